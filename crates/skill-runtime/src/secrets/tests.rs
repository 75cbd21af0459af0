use futures_util::FutureExt as _;

use super::*;

fn provider() -> SecretProvider {
    let env = EnvSource::new(|name: &str| match name {
        "SET" => Some("value-of-set".to_owned()),
        "EMPTY" => Some(String::new()),
        "SHORT" => Some("abc".to_owned()),
        _ => None,
    });
    SecretProvider::new().with_source("env", Arc::new(env))
}

fn resolve(provider: &SecretProvider, name: &str) -> Result<Resolved, SecretError> {
    provider.resolve(name).now_or_never().unwrap()
}

#[test]
fn a_profile_is_checked_when_it_is_registered() {
    for (name, source, code) in [
        ("bad name", "env:A".to_owned(), "invalid_profile_name"),
        ("", "env:A".into(), "invalid_profile_name"),
        (&*"n".repeat(65), "env:A".into(), "invalid_profile_name"),
        ("a", String::new(), "invalid_source_uri"),
        ("a", "nocolon".into(), "invalid_source_uri"),
        ("a", "env:".into(), "invalid_source_uri"),
        ("a", ":x".into(), "invalid_source_uri"),
        ("a", format!("sk-{}", "a".repeat(22)), "literal_secret_rejected"),
        ("a", "literal:x".into(), "literal_secret_rejected"),
        ("a", "vault:x".into(), "source_unsupported"),
    ] {
        let error = provider().register(Profile::new(name, ProfileKind::Raw, source.clone())).unwrap_err();
        assert_eq!(error.code(), code, "{source}");
        assert!(source.len() < 8 || !error.to_string().contains(&source), "{error}");
    }
}

#[test]
fn a_secret_is_shaped_masked_and_reaches_only_those_who_declare_it() {
    let mut secrets = provider();
    for (name, kind, source) in [
        ("b", ProfileKind::Bearer, "env:SET"),
        ("u", ProfileKind::Basic, "env:SET"),
        ("r", ProfileKind::Raw, "env:SET"),
        ("unset", ProfileKind::Raw, "env:NONE"),
        ("empty", ProfileKind::Raw, "env:EMPTY"),
        ("short", ProfileKind::Raw, "env:SHORT"),
    ] {
        secrets.register(Profile::new(name, kind, source).with_username("me")).unwrap();
    }
    let header = |name: &str| resolve(&secrets, name).unwrap().header().map(|h| h.expose().to_owned());
    assert_eq!(header("b").as_deref(), Some("Bearer value-of-set"));
    assert_eq!(header("u").as_deref(), Some("Basic bWU6dmFsdWUtb2Ytc2V0"));
    assert_eq!(header("r"), None);
    for (name, code) in [
        ("unset", "source_read_failed"),
        ("empty", "source_read_failed"),
        ("short", "secret_too_short"),
        ("ghost", "profile_not_found"),
    ] {
        assert_eq!(resolve(&secrets, name).unwrap_err().code(), code, "{name}");
    }
    assert_eq!(secrets.redactor().text("value-of-set bWU6dmFsdWUtb2Ytc2V0"), "*** ***");
    assert!(!format!("{secrets:?}{:?}", resolve(&secrets, "u")).contains("value-of"));
    let limited = secrets.limited_to(&["r"]);
    assert!(resolve(&limited, "r").is_ok());
    assert_eq!(resolve(&limited, "b").unwrap_err().code(), "profile_not_found");
}

#[cfg(unix)]
#[test]
fn a_secret_file_is_private_and_a_link_to_one_is_as_good() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let (base, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |path: std::path::PathBuf, text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    write(base.path().join("good"), "file-secret\r\n", 0o600);
    write(base.path().join("open"), "file-secret", 0o644);
    write(base.path().join("blank"), "\n", 0o600);
    write(outside.path().join("else"), "file-secret", 0o600);
    symlink("good", base.path().join("link")).unwrap();
    symlink(outside.path().join("else"), base.path().join("escape")).unwrap();
    std::fs::create_dir(base.path().join("folder")).unwrap();
    let source = FileSource::new(base.path());
    for (place, result) in [
        ("good", Ok("file-secret")),
        ("link", Ok("file-secret")),
        ("open", Err("file_mode_insecure")),
        ("blank", Err("source_read_failed")),
        ("folder", Err("source_read_failed")),
        ("ghost", Err("source_read_failed")),
        ("escape", Err("source_read_failed")),
        ("../else", Err("source_read_failed")),
    ] {
        let read = source.read(place).now_or_never().unwrap();
        let read = read.as_ref().map(Secret::expose).map_err(SecretError::code);
        assert_eq!(read, result, "{place}");
    }
}
