//! Only examples live here.
