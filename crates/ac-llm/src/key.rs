//! Where keys come from.

use std::sync::Arc;

use secrecy::SecretString;

/// A source of keys. Asked anew for each request, so a key can change while the process lives.
pub trait Keys: Send + Sync + 'static {
    /// The key of `provider`. `vars` are the variables that usually hold it, the most usual first. `None`: there is none.
    fn key(&self, provider: &str, vars: &[Arc<str>]) -> Option<SecretString>;
}

/// Keys from environment variables. An empty variable is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvKeys;

impl Keys for EnvKeys {
    fn key(&self, _provider: &str, vars: &[Arc<str>]) -> Option<SecretString> {
        vars.iter().find_map(|var| std::env::var(&**var).ok().filter(|key| !key.trim().is_empty()).map(SecretString::from))
    }
}

/// Any function of provider and variables is a source: a keychain, a table of tenants.
impl<F> Keys for F
where
    F: Fn(&str, &[Arc<str>]) -> Option<SecretString> + Send + Sync + 'static,
{
    fn key(&self, provider: &str, vars: &[Arc<str>]) -> Option<SecretString> {
        self(provider, vars)
    }
}
