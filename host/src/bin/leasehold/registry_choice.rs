//! Turns the command line, the environment and the disk into the registry file that the program takes.
//!
//! The first of: `--registry`, `LEASEHOLD_REGISTRY`, `./registry.toml`, `$XDG_CONFIG_HOME/leasehold/registry.toml`
//! (without that variable, `~/.config`), `/etc/leasehold/registry.toml`. What is named has to be there; a place that
//! is only looked at may be empty. A file that is there and can't be read is taken too: reading it then says so, and
//! another one never stands in. In a program that has more rights than its caller, no variable is looked at.

use leasehold::EnvironmentTrust;
use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

const VARIABLE: &str = "LEASEHOLD_REGISTRY";
const FILE: &str = "registry.toml";

/// Everything that the choice depends on, the disk aside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// The value of `--registry`.
    pub(crate) flag: Option<PathBuf>,
    /// The value of `LEASEHOLD_REGISTRY`; an empty one counts as unset.
    pub(crate) variable: Option<OsString>,
    /// Where `./registry.toml` is looked for.
    pub(crate) working_folder: PathBuf,
    /// The value of `XDG_CONFIG_HOME`; one that is not absolute counts as unset, as its specification wants.
    pub(crate) config_home: Option<PathBuf>,
    /// The value of `HOME`.
    pub(crate) home: Option<PathBuf>,
    /// `/etc`.
    pub(crate) system_folder: PathBuf,
}

/// The registry that the program takes. Prints the line that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RegistryChoice {
    /// This file, by this rule.
    File { path: PathBuf, rule: Rule },
    /// None: the built-in host-mmap alone. These were looked at.
    BuiltinOnly { tried: Vec<PathBuf> },
}

/// What chose a registry file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Flag,
    Variable,
    WorkingFolder,
    UserConfiguration,
    SystemConfiguration,
}

/// A registry file that was named and is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: not taken: {path:?} does not exist; name an existing registry file, or leave it out")]
pub(crate) struct ChoiceError {
    rule: Rule,
    path: PathBuf,
}

impl Inputs {
    /// The inputs of this process, with what its command line said.
    pub(crate) fn of_this_process(flag: Option<PathBuf>) -> Self {
        let inputs = Self { flag, working_folder: ".".into(), system_folder: "/etc".into(), ..Self::default() };
        match EnvironmentTrust::of_this_process() {
            EnvironmentTrust::Untrusted => inputs,
            EnvironmentTrust::Trusted => inputs.with_variables(|name| env::var_os(name)),
        }
    }

    fn with_variables(self, value: impl Fn(&str) -> Option<OsString>) -> Self {
        Self {
            variable: value(VARIABLE),
            config_home: value("XDG_CONFIG_HOME").map(PathBuf::from),
            home: value("HOME").map(PathBuf::from),
            ..self
        }
    }

    /// Chooses the registry file.
    ///
    /// # Errors
    ///
    /// The command line or the variable names a file that does not exist.
    pub(crate) fn choose(&self) -> Result<RegistryChoice, ChoiceError> {
        let variable = self.variable.as_ref().filter(|value| !value.is_empty()).map(PathBuf::from);
        let flag = self.flag.clone().map(|path| (path, Rule::Flag));
        if let Some((path, rule)) = flag.or_else(|| variable.map(|path| (path, Rule::Variable))) {
            return if is_absent(&path) {
                Err(ChoiceError { rule, path })
            } else {
                Ok(RegistryChoice::File { path, rule })
            };
        }
        let places = self.places();
        Ok(match places.iter().find(|(path, _)| !is_absent(path)) {
            Some((path, rule)) => RegistryChoice::File { path: path.clone(), rule: *rule },
            None => RegistryChoice::BuiltinOnly { tried: places.into_iter().map(|(path, _)| path).collect() },
        })
    }

    /// The places that are looked at when no file is named.
    fn places(&self) -> Vec<(PathBuf, Rule)> {
        let absolute = |path: &&PathBuf| path.is_absolute();
        let configuration = self.config_home.as_ref().filter(absolute).cloned();
        let configuration =
            configuration.or_else(|| self.home.as_ref().filter(absolute).map(|home| home.join(".config")));
        let below = |folder: &Path| folder.join("leasehold").join(FILE);
        [
            Some((self.working_folder.join(FILE), Rule::WorkingFolder)),
            configuration.map(|folder| (below(&folder), Rule::UserConfiguration)),
            Some((below(&self.system_folder), Rule::SystemConfiguration)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn is_absent(path: &Path) -> bool {
    path.metadata().is_err_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Flag => "--registry",
            Self::Variable => VARIABLE,
            Self::WorkingFolder => "the working directory",
            Self::UserConfiguration => "the user's configuration",
            Self::SystemConfiguration => "the system's configuration",
        })
    }
}

impl fmt::Display for RegistryChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, rule } => write!(formatter, "registry: {} (from {rule})", path.display()),
            Self::BuiltinOnly { tried } => {
                let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
                write!(formatter, "registry: none, so the built-in host-mmap alone (looked at {})", tried.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    const PLACES: [&str; 6] = [
        "flag.toml",
        "variable.toml",
        "work/registry.toml",
        "xdg/leasehold/registry.toml",
        "home/.config/leasehold/registry.toml",
        "etc/leasehold/registry.toml",
    ];

    /// A folder with these files, and inputs that lead into it.
    fn machine(files: &[&str]) -> (TempDir, Inputs) {
        let root = TempDir::new().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "format = 1").unwrap();
        }
        let inputs = Inputs {
            working_folder: root.path().join("work"),
            home: Some(root.path().join("home")),
            system_folder: root.path().join("etc"),
            ..Inputs::default()
        };
        (root, inputs)
    }

    /// The line that is printed, its folder cut off.
    fn line(root: &TempDir, inputs: &Inputs) -> String {
        let line = inputs.choose().map_or_else(|error| error.to_string(), |choice| choice.to_string());
        line.replace(&format!("{}/", root.path().display()), "")
    }

    #[test]
    fn the_first_place_wins() {
        let (root, mut inputs) = machine(&PLACES);
        inputs.flag = Some(root.path().join("flag.toml"));
        inputs.variable = Some(root.path().join("variable.toml").into());
        inputs.config_home = Some(root.path().join("xdg"));
        assert_eq!(line(&root, &inputs), "registry: flag.toml (from --registry)");
        inputs.flag = None;
        assert_eq!(line(&root, &inputs), "registry: variable.toml (from LEASEHOLD_REGISTRY)");
        inputs.variable = None;
        assert_eq!(line(&root, &inputs), "registry: work/registry.toml (from the working directory)");
        inputs.working_folder = root.path().join("empty");
        let user = "leasehold/registry.toml (from the user's configuration)";
        assert_eq!(line(&root, &inputs), format!("registry: xdg/{user}"));
        inputs.config_home = None;
        assert_eq!(line(&root, &inputs), format!("registry: home/.config/{user}"));
        inputs.home = None;
        let system = "registry: etc/leasehold/registry.toml (from the system's configuration)";
        assert_eq!(line(&root, &inputs), system);
    }

    #[test]
    fn without_any_there_is_the_builtin_alone() {
        let (root, inputs) = machine(&[]);
        assert_eq!(
            line(&root, &inputs),
            "registry: none, so the built-in host-mmap alone (looked at work/registry.toml, \
             home/.config/leasehold/registry.toml, etc/leasehold/registry.toml)"
        );
    }

    #[test]
    fn a_named_file_that_is_missing_is_an_error() {
        let (root, mut inputs) = machine(&["work/registry.toml"]);
        inputs.variable = Some(root.path().join("gone.toml").into());
        assert_eq!(
            line(&root, &inputs),
            "LEASEHOLD_REGISTRY: not taken: \"gone.toml\" does not exist; name an existing registry file, or leave it \
             out"
        );
        inputs.flag = Some(root.path().join("lost.toml"));
        assert!(line(&root, &inputs).starts_with("--registry: not taken: \"lost.toml\" does not exist; "));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let (root, mut inputs) = machine(&["home/.config/leasehold/registry.toml"]);
        inputs.variable = Some(OsString::new());
        inputs.config_home = Some(PathBuf::new());
        assert!(line(&root, &inputs).ends_with("(from the user's configuration)"));
    }

    #[test]
    fn a_configuration_folder_that_is_not_absolute_counts_as_unset() {
        let (root, mut inputs) = machine(&["home/.config/leasehold/registry.toml"]);
        inputs.config_home = Some("xdg".into());
        assert!(line(&root, &inputs).starts_with("registry: home/.config/"));
    }

    #[test]
    fn what_is_there_and_can_not_be_read_is_taken() {
        let (root, inputs) = machine(&["work/registry.toml/inner", "etc/leasehold/registry.toml"]);
        assert_eq!(line(&root, &inputs), "registry: work/registry.toml (from the working directory)");
    }

    #[test]
    fn the_variables_have_their_names() {
        let inputs = Inputs::default().with_variables(|name| Some(name.into()));
        assert_eq!(inputs.variable, Some("LEASEHOLD_REGISTRY".into()));
        assert_eq!(inputs.config_home, Some("XDG_CONFIG_HOME".into()));
        assert_eq!(inputs.home, Some("HOME".into()));
    }

    #[test]
    fn a_process_looks_in_its_working_directory_and_below_etc() {
        let inputs = Inputs::of_this_process(Some("x.toml".into()));
        assert_eq!(inputs.flag, Some("x.toml".into()));
        assert_eq!((inputs.working_folder, inputs.system_folder), (".".into(), "/etc".into()));
    }
}
