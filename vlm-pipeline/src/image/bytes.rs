//! Reading integers from bytes that may end too early.

/// The `N` bytes at `at`, if they are all there.
fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    take(bytes, at).map(u16::from_be_bytes)
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_be_bytes)
}

pub(super) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    take(bytes, at).map(u16::from_le_bytes)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_le_bytes)
}
