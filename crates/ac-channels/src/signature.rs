//! Signatures, checked in constant time.

use ac_core::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How old a request may be, and how far ahead of this clock, in milliseconds.
pub(crate) const MAX_AGE_MS: i64 = 5 * 60 * 1000;

/// HMAC-SHA256 over the pieces, one after the other.
pub(crate) fn hmac(key: &[u8], pieces: &[&[u8]]) -> [u8; 32] {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    for piece in pieces {
        mac.update(piece);
    }
    mac.finalize().into_bytes().into()
}

/// Whether `given` is the HMAC-SHA256 over the pieces. An empty key signs nothing.
pub(crate) fn hmac_fits(key: &[u8], pieces: &[&[u8]], given: &[u8]) -> bool {
    same(&hmac(key, pieces), given) && !key.is_empty()
}

/// Whether two byte strings are the same. Takes the same time whatever differs, for inputs of the same length.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Whether two secrets are the same, in a time that tells nothing about them, nor about their lengths: for adapters whose platform sends
/// a shared token. Two empty ones are not the same.
pub fn same_secret(a: &[u8], b: &[u8]) -> bool {
    same(&Sha256::digest(a), &Sha256::digest(b)) && !a.is_empty()
}

/// Whether a public key signed the pieces (Ed25519, RFC 8032, strict).
pub(crate) fn ed25519_fits(key: &ed25519_dalek::VerifyingKey, message: &[u8], given: &[u8]) -> bool {
    let Ok(bytes) = <[u8; 64]>::try_from(given) else { return false };
    key.verify_strict(message, &ed25519_dalek::Signature::from_bytes(&bytes)).is_ok()
}

/// Whether a moment, in seconds since the epoch, is near enough to now.
pub(crate) fn is_fresh(seconds: i64, now: Timestamp) -> bool {
    now.millis_since(Timestamp::from_millis(seconds.saturating_mul(1000))).unsigned_abs() <= MAX_AGE_MS.unsigned_abs()
}

/// Bytes from hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// A short name for something long: the first 128 bits of its SHA-256, URL-safe.
pub(crate) fn digest(text: &str) -> String {
    use base64::Engine as _;
    let hash = Sha256::digest(text.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash.first_chunk::<16>().unwrap_or(&[0; 16]))
}

/// The value of a header, where it is text.
pub(crate) fn header<'a>(request: &'a http::Request<bytes::Bytes>, name: &str) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8032, section 7.1, tests 1 and 2.
    const VECTORS: [(&str, &str, &str); 2] = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
    ];

    #[test]
    fn the_official_vectors_of_ed25519_fit_and_their_neighbours_do_not() {
        for (key, message, signature) in VECTORS {
            let key = ed25519_dalek::VerifyingKey::from_bytes(&unhex(key).unwrap().try_into().unwrap()).unwrap();
            let (message, signature) = (unhex(message).unwrap(), unhex(signature).unwrap());
            assert!(ed25519_fits(&key, &message, &signature));
            for bit in 0..8 {
                let mut other = signature.clone();
                other[3] ^= 1 << bit;
                assert!(!ed25519_fits(&key, &message, &other));
            }
            assert!(!ed25519_fits(&key, b"another", &signature));
            assert!(!ed25519_fits(&key, &message, &signature[..63]));
        }
    }

    #[test]
    fn the_official_vectors_of_hmac_sha256_fit() {
        // RFC 4231, test cases 1 and 2.
        let key = [0x0b; 20];
        let mac = unhex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7").unwrap();
        assert!(hmac_fits(&key, &[b"Hi ", b"There"], &mac));
        let mac = unhex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843").unwrap();
        assert!(hmac_fits(b"Jefe", &[b"what do ya want ", b"for nothing?"], &mac));
        assert!(!hmac_fits(b"", &[b"x"], &hmac(b"", &[b"x"])), "an empty key signs nothing");
    }

    #[test]
    fn five_minutes_are_the_limit_in_both_directions() {
        let now = Timestamp::from_millis(1_000_000_000);
        for (seconds, fresh) in
            [(1_000_000, true), (999_700, true), (999_699, false), (1_000_300, true), (1_000_301, false), (i64::MIN, false)]
        {
            assert_eq!(is_fresh(seconds, now), fresh, "{seconds}");
        }
    }

    #[test]
    fn only_hexadecimal_digits_in_pairs_are_bytes() {
        assert_eq!(unhex("00fF"), Some(vec![0, 255]));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("0g"), None);
    }
}
