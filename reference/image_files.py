"""Small picture files of every format, depth and orientation, with the pixels that the reference reads from them.

    python reference/image_files.py

writes vlm-pipeline/tests/data/image_files.json: an array of {name, base64, width, height, tolerance, rgb}, where `rgb` is
the picture in hexadecimal as Pillow reads it, turned by `ImageOps.exif_transpose` and laid over white by transformers'
`convert_to_rgb`. Pillow clips 16-bit samples where it should scale them, so files of 16 bits are expected to be
`round(v / 257)`, computed here. `tolerance` is in levels: 0 but for lossy formats, whose decoders have some freedom.

Needs transformers 5.24 and Pillow.
"""

import base64
import io
import json
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from transformers.image_transforms import convert_to_rgb

DATA = Path(__file__).resolve().parent.parent / "vlm-pipeline" / "tests" / "data"
FILES: list[dict] = []
ORIENTATION = 0x0112


def add(name: str, data: bytes, rgb: np.ndarray | None = None, tolerance: int = 0) -> None:
    if rgb is None:
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        rgb = convert_to_rgb(image, return_numpy=True)
    rgb = np.asarray(rgb)
    assert rgb.dtype == np.uint8 and rgb.shape[2] == 3, (name, rgb.dtype, rgb.shape)
    FILES.append(
        {
            "name": name,
            "base64": base64.b64encode(data).decode(),
            "width": rgb.shape[1],
            "height": rgb.shape[0],
            "tolerance": tolerance,
            "rgb": rgb.tobytes().hex(),
        }
    )


def saved(image: Image.Image, form: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, depth: int, colour: int, rows: list[bytes], extra: bytes = b"") -> bytes:
    """A PNG of the given raw rows; `extra` chunks stand before the pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = chunk(b"IHDR", header) + extra + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def exif(orientation: int, big: bool = False) -> bytes:
    """A TIFF of the one tag."""
    order, mark = (">", b"MM\0*") if big else ("<", b"II*\0")
    return mark + struct.pack(f"{order}IHHHIHHI", 8, 1, ORIENTATION, 3, 1, orientation, 0, 0)


def corner(width: int = 3, height: int = 2) -> np.ndarray:
    """Six different colours, so that no two orientations look alike."""
    colours = [(255, 0, 0), (0, 0, 255), (0, 255, 0), (255, 255, 0), (9, 90, 200), (77, 0, 128)]
    return np.array(colours, dtype=np.uint8).reshape(height, width, 3)


def smooth(width: int, height: int) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 6 % 256, y * 7 % 256, (x + y) * 3 % 256], axis=-1).astype(np.uint8)


def orientations() -> None:
    small = Image.fromarray(corner())
    # blocks of 16 keep the colours apart in a JPEG
    large = Image.fromarray(np.kron(corner(), np.ones((16, 16, 1), dtype=np.uint8)))
    for value in range(1, 9):
        block = exif(value, big=value % 2 == 0)
        rows = [row.tobytes() for row in corner()]
        add(f"orientation {value} png", png(3, 2, 8, 2, rows, chunk(b"eXIf", block)))
        tags = Image.Exif()
        tags[ORIENTATION] = value
        add(f"orientation {value} webp", saved(small, "WEBP", lossless=True, exif=tags.tobytes()))
        add(f"orientation {value} tiff", saved(small, "TIFF", exif=tags))
        jpeg = saved(large, "JPEG", quality=95, subsampling=0, exif=b"Exif\0\0" + block)
        small_rgb = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(jpeg))))[8::16, 8::16]
        FILES.append({"name": f"orientation {value} jpeg", "base64": base64.b64encode(jpeg).decode()})
        FILES[-1] |= {"width": 16 * small_rgb.shape[1], "height": 16 * small_rgb.shape[0], "tolerance": 1}
        FILES[-1] |= {"step": 16, "rgb": np.ascontiguousarray(small_rgb).tobytes().hex()}
    upright = np.asarray(small)
    for name, block in {
        "value 0": exif(0),
        "value 9": exif(9),
        "value 65535": exif(65535),
        "no tag": b"II*\0\x08\0\0\0\0\0\0\0\0\0",
        "cut": exif(6)[:17],
        "offset outside": b"MM\0*\xff\xff\xff\xff",
        "no TIFF": b"nonsense",
    }.items():
        rows = [row.tobytes() for row in corner()]
        add(f"broken exif: {name} png", png(3, 2, 8, 2, rows, chunk(b"eXIf", block)), upright)


def depths() -> None:
    grey = {1: [0b01011000], 2: [0b00011011, 0b11100100], 4: [0x0F, 0x5A], 8: [0, 1, 128, 255]}
    for depth, data in grey.items():
        width = len(data) * 8 // depth if depth < 8 else 4
        values = [(byte >> shift) & (2**depth - 1) for byte in data for shift in range(8 - depth, -1, -depth)]
        levels = np.array(values, dtype=np.uint8) * (255 // (2**depth - 1))
        add(f"grey {depth} bits png", png(width, 1, depth, 0, [bytes(data)]), np.stack([levels] * 3, -1)[None])
    wide = [0, 255, 256, 65535, 32768, 129, 128]
    levels = np.rint(np.array(wide) / 257).astype(np.uint8)
    add("grey 16 bits png", png(7, 1, 16, 0, [struct.pack(">7H", *wide)]), np.stack([levels] * 3, -1)[None])
    tiff = Image.fromarray(np.array([wide], dtype=np.uint16))
    add("grey 16 bits tiff", saved(tiff, "TIFF"), np.stack([levels] * 3, -1)[None])
    rgb16 = [(0, 65535, 257), (256, 255, 33000)]
    expected = np.rint(np.array(rgb16) / 257).astype(np.uint8)[None]
    add("rgb 16 bits png", png(2, 1, 16, 2, [struct.pack(">6H", *sum(rgb16, ()))]), expected)
    rgba16 = [(65535, 0, 0, 0), (65535, 0, 0, 128 * 257), (1000, 2000, 3000, 65535)]
    expected = [(255, 255, 255), (255, 127, 127), (4, 8, 12)]
    raw = struct.pack(">12H", *sum(rgba16, ()))
    add("rgba 16 bits png", png(3, 1, 16, 6, [raw]), np.array([expected], dtype=np.uint8))
    add("grey and alpha 16 bits png", png(2, 1, 16, 4, [struct.pack(">4H", 0, 0, 0, 65535)]), np.array([[[255] * 3, [0] * 3]], dtype=np.uint8))
    # a key colour makes its pixels transparent
    keyed = png(2, 1, 16, 0, [struct.pack(">2H", 5, 6)], chunk(b"tRNS", struct.pack(">H", 5)))
    add("grey 16 bits with key png", keyed, np.array([[[255] * 3, [0] * 3]], dtype=np.uint8))
    add("grey 8 bits with key png", png(2, 1, 8, 0, [bytes([5, 6])], chunk(b"tRNS", struct.pack(">H", 5))))
    keyed = png(2, 1, 8, 2, [bytes([1, 2, 3, 1, 2, 4])], chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3)))
    add("rgb with key png", keyed)


def alphas() -> None:
    pixels = [(255, 0, 0, 0), (255, 0, 0, 128), (10, 20, 30, 255), (0, 0, 0, 1), (200, 100, 50, 254)]
    rgba = Image.fromarray(np.array([pixels], dtype=np.uint8))
    add("rgba png", saved(rgba, "PNG"))
    add("rgba interlaced png", png_interlaced(rgba))
    add("rgba webp", saved(rgba, "WEBP", lossless=True, exact=True))
    add("rgba tiff", saved(rgba, "TIFF"))
    grey_alpha = Image.fromarray(np.array([[(0, 0), (0, 128), (77, 255)]], dtype=np.uint8), "LA")
    add("grey and alpha png", saved(grey_alpha, "PNG"))
    palette = bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7])
    for depth, row in {1: 0b01000000, 2: 0b00011011, 4: 0x01, 8: 3}.items():
        width = {1: 2, 2: 4, 4: 2, 8: 1}[depth]
        extra = chunk(b"PLTE", palette) + chunk(b"tRNS", bytes([0, 128]))
        add(f"palette {depth} bits with alpha png", png(width, 1, depth, 3, [bytes([row])], extra))
    add("palette without alpha png", png(4, 1, 2, 3, [bytes([0b00011011])], chunk(b"PLTE", palette)))


def png_interlaced(rgba: Image.Image) -> bytes:
    """One row interlaced by Adam7: the passes take columns 0, 4, 2, then the odd ones."""
    data = np.asarray(rgba)[0]
    passes = [data[0::8], data[4::8], data[2::4], data[1::2]]
    raw = b"".join(b"\0" + part.tobytes() for part in passes if len(part))
    header = struct.pack(">IIBBBBB", len(data), 1, 8, 6, 0, 0, 1)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def formats() -> None:
    small = Image.fromarray(smooth(7, 5))
    for form in ("PNG", "BMP", "TIFF"):
        add(f"rgb {form.lower()}", saved(small, form))
    add("rgb webp", saved(small, "WEBP", lossless=True))
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits"):
        add(f"rgb {compression}", saved(small, "TIFF", compression=compression))
    add("grey bmp", saved(small.convert("L"), "BMP"))
    add("bilevel bmp", saved(small.convert("1"), "BMP"))
    add("palette bmp", saved(small.quantize(8), "BMP"))
    add("rgba bmp", saved(small.convert("RGBA"), "BMP"))
    add("grey tiff", saved(small.convert("L"), "TIFF"))
    add("bilevel tiff", saved(small.convert("1"), "TIFF"))
    red, blue = Image.new("P", (4, 3), 0), Image.new("P", (4, 3), 1)
    for frame in (red, blue):
        frame.putpalette(bytes([200, 0, 0, 0, 0, 200]))
    add("two frames gif", saved(red, "GIF", save_all=True, append_images=[blue]))
    dotted = Image.fromarray(np.array([[0, 1, 2], [2, 1, 0]], dtype=np.uint8), "P")
    dotted.putpalette(bytes([200, 0, 0, 0, 200, 0, 0, 0, 200]))
    add("transparent gif", saved(dotted, "GIF", transparency=1))
    two = [Image.fromarray(smooth(6, 4)), Image.new("RGB", (6, 4))]
    add("two frames webp", saved(two[0], "WEBP", save_all=True, append_images=two[1:], lossless=True))
    wave = Image.fromarray(smooth(24, 17))
    # measured against libjpeg-turbo and libwebp; the inverse transform and the colour interpolation are theirs to choose
    add("grey jpeg", saved(wave.convert("L"), "JPEG", quality=90), tolerance=2)
    add("jpeg 4:4:4", saved(wave, "JPEG", quality=90, subsampling=0), tolerance=3)
    add("progressive jpeg", saved(wave, "JPEG", quality=90, subsampling=0, progressive=True), tolerance=3)
    add("jpeg with restarts", saved(wave, "JPEG", quality=90, subsampling=0, restart_marker_blocks=1), tolerance=3)
    add("jpeg 4:2:0", saved(wave, "JPEG", quality=90), tolerance=3)
    add("lossy webp", saved(wave, "WEBP", quality=90), tolerance=1)


def main() -> None:
    orientations()
    depths()
    alphas()
    formats()
    text = ",\n".join(json.dumps(entry) for entry in FILES)
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "image_files.json").write_text(f"[\n{text}\n]\n")
    print(f"image_files.json: {len(FILES)} pictures, {len(text)} bytes")


if __name__ == "__main__":
    main()
