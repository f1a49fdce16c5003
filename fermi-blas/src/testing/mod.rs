//! References and tools for tests.
