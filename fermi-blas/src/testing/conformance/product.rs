//! Matrix products.

use super::GAPS;
use crate::testing::reference::{Host, naive_gemm};
use crate::testing::{Held, assert_near, tolerance, uniform};
use crate::{Blas, Error, Gemm, GemmBatched, Matrix};

/// m, k, n: nothing, one, odd, a few rows, larger than any block.
const SIZES: [(usize, usize, usize); 13] = [
    (0, 3, 4),
    (3, 0, 4),
    (3, 4, 0),
    (1, 1, 1),
    (1, 300, 1),
    (2, 3, 5),
    (7, 64, 9),
    (33, 129, 65),
    (5, 1024, 300),
    (300, 5, 70),
    (64, 64, 128),
    (70, 72, 257),
    (130, 588, 96),
];

fn held<B: Blas>(device: &B, host: &Host, transposed: bool, gap: usize) -> Held<B> {
    let host = if transposed { host.transposed() } else { host.clone() };
    Held::new(device, host.rows, host.columns, &host.values, gap)
}

/// One product, in every orientation, with and without gaps, with alpha and beta; beta = 0 passes over NaN.
///
/// # Panics
/// When the device fails.
pub fn gemm<B: Blas>(device: &B) {
    for (m, k, n) in SIZES {
        let (a, b) = (Host::uniform("a", m, k), Host::uniform("b", k, n));
        for index in 0..8 {
            let (a_turned, b_turned, gap) = (index & 1 > 0, index & 2 > 0, GAPS[index >> 2]);
            let (alpha, beta) = [(1.0, 0.0), (0.5, 1.0), (-1.0, 0.0), (2.0, -0.25)][index % 4];
            let mut old = Host::uniform("c", m, n);
            if beta == 0.0 {
                old.values.fill(f32::NAN);
            }
            let mut c = held(device, &old, false, gap);
            let (a_held, b_held) = (held(device, &a, a_turned, gap), held(device, &b, b_turned, gap));
            let (a_view, b_view) = (a_held.view(), b_held.view());
            let product = match (a_turned, b_turned) {
                (false, false) => Gemm::new(a_view, b_view, c.view_mut()),
                (false, true) => Gemm::new(a_view, b_view.t(), c.view_mut()),
                (true, false) => Gemm::new(a_view.t(), b_view, c.view_mut()),
                (true, true) => Gemm::new(a_view.t(), b_view.t(), c.view_mut()),
            };
            device.gemm(product.unwrap().alpha(alpha).beta(beta)).unwrap();
            let expected = naive_gemm(&a, &b, &old, f64::from(alpha), f64::from(beta));
            let what = format!("gemm {m}x{k}x{n} case {index}");
            assert_near(&what, &c.values(), &expected.values, &expected.magnitudes, tolerance::product(k));
        }
    }
}

/// Sizes that do not fit together are refused where the product is built.
///
/// # Panics
/// When the device fails.
pub fn gemm_shapes<B: Blas>(device: &B) {
    let matrix = |rows, columns| Matrix::<B>::zeros(device, rows, columns).unwrap();
    let (a, b) = (matrix(4, 6), matrix(6, 2));
    for (rows, columns) in [(4, 3), (3, 2), (2, 4)] {
        let mut c = matrix(rows, columns);
        assert!(matches!(Gemm::new(a.view(), b.view(), c.view_mut()), Err(Error::Shape { .. })));
    }
    let mut c = matrix(4, 2);
    assert!(matches!(Gemm::new(a.view(), b.view().t(), c.view_mut()), Err(Error::Shape { .. })));
    let (a, b) = (a.view().blocks(2).unwrap(), b.view().broadcast(3));
    let c = c.view_mut().blocks(2).unwrap();
    assert!(matches!(GemmBatched::new(a, b, c), Err(Error::Shape { axis: "batch", .. })));
}

/// Batches whose entries lie side by side, one behind the other, or are one matrix; as attention uses them.
///
/// # Panics
/// When the device fails.
pub fn gemm_batched<B: Blas>(device: &B) {
    for (heads, tokens, keys, width) in [
        (1, 1, 1, 1),
        (2, 3, 5, 7),
        (4, 0, 2, 3),
        (3, 2, 4, 0),
        (16, 33, 40, 72),
        (5, 130, 64, 64),
        (2, 3, 5, 777),
    ] {
        let q = Host::uniform("q", tokens, heads * width);
        let k = Host::uniform("k", keys, heads * width);
        let part = |host: &Host, head: usize| {
            let rows = host.values.chunks((heads * width).max(1));
            let values = rows.flat_map(|row| row[head * width..][..width].to_vec()).collect();
            Host { rows: host.rows, columns: width, values }
        };
        let mut scores = vec![Vec::new(); 2];
        for (layout, scores) in scores.iter_mut().enumerate() {
            // one head's scores behind the other's, or side by side
            let (rows, columns) = if layout == 0 { (heads * tokens, keys) } else { (tokens, heads * keys) };
            let mut c = Held::new(device, rows, columns, &uniform("c", rows * columns), 3);
            let (q, k) = (held(device, &q, false, 3), held(device, &k, false, 5));
            let (q, k) = (q.view().heads(heads).unwrap(), k.view().heads(heads).unwrap());
            let c_view = if layout == 0 { c.view_mut().blocks(heads) } else { c.view_mut().heads(heads) };
            device.gemm_batched(GemmBatched::new(q, k.t(), c_view.unwrap()).unwrap().alpha(0.25)).unwrap();
            *scores = c.values();
        }
        for head in 0..heads {
            let old = Host { rows: tokens, columns: keys, values: vec![0.0; tokens * keys] };
            let expected = naive_gemm(&part(&q, head), &part(&k, head).transposed(), &old, 0.25, 0.0);
            let behind = &scores[0][head * tokens * keys..][..tokens * keys];
            let beside: Vec<f32> = (0..tokens)
                .flat_map(|token| &scores[1][(token * heads + head) * keys..][..keys])
                .copied()
                .collect();
            for actual in [behind, &beside] {
                let tolerance = tolerance::product(width);
                assert_near("gemm_batched", actual, &expected.values, &expected.magnitudes, tolerance);
            }
        }
    }
    // few rows and many, columns beside whole blocks of 16 to 128, inner dimensions that are split with and without a rest
    for (m, k, n) in [
        (4, 65, 6),
        (1, 3, 300),
        (5, 40, 128),
        (8, 7, 147),
        (9, 16, 130),
        (2, 1024, 3),
        (3, 1030, 5),
        (9, 517, 40),
    ] {
        shared(device, (m, k, n), true);
        shared(device, (m, k, n), false);
    }
}

/// Two threads with one device: what belongs to one product stays together.
///
/// # Panics
/// When the device fails.
pub fn gemm_batched_by_two_threads<B: Blas>(device: &B) {
    std::thread::scope(|scope| {
        for size in [(2, 1030, 3), (5, 40, 7)] {
            scope.spawn(move || (0..4).for_each(|_| shared(device, size, false)));
        }
    });
}

/// Fewer matrices than products, each for several of them, added to what was there.
fn shared<B: Blas>(device: &B, (m, k, n): (usize, usize, usize), transposed: bool) {
    for (batch, lefts, rights) in [(12, 1, 12), (12, 12, 3), (12, 2, 3), (12, 4, 1), (12, 12, 12), (64, 1, 1)]
    {
        let (a, b) = (Host::uniform("a", lefts * m, k), Host::uniform("b", rights * k, n));
        let old = Host::uniform("c", batch * m, n);
        let part = |host: &Host, rows: usize, index: usize| Host {
            rows,
            columns: host.columns,
            values: host.values[index * rows * host.columns..][..rows * host.columns].to_vec(),
        };
        let mut c = held(device, &old, false, 0);
        // a transposed input is kept as its blocks' transposes, one below the other
        let kept = match transposed {
            true => {
                let blocks = (0..lefts).flat_map(|index| part(&a, m, index).transposed().values);
                Host { rows: lefts * k, columns: m, values: blocks.collect() }
            }
            false => Host { rows: a.rows, columns: k, values: a.values.clone() },
        };
        let (a_held, b_held) = (held(device, &kept, false, 3), held(device, &b, false, 3));
        let left = a_held.view().blocks(lefts).unwrap();
        let left = if transposed { left.t() } else { left.into() };
        let right = b_held.view().blocks(rights).unwrap();
        let product = GemmBatched::new(left, right, c.view_mut().blocks(batch).unwrap()).unwrap();
        device.gemm_batched(product.beta(1.0)).unwrap();
        let values = c.values();
        for index in 0..batch {
            let left = part(&a, m, index / (batch / lefts));
            let right = part(&b, k, index / (batch / rights));
            let expected = naive_gemm(&left, &right, &part(&old, m, index), 1.0, 1.0);
            let actual = &values[index * m * n..][..m * n];
            assert_near("shared", actual, &expected.values, &expected.magnitudes, tolerance::product(k));
        }
    }
}
