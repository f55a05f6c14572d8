//! Why a probe in the kernel is not there: refusing is better than a figure that may be wrong.

/// A probe that cannot be had here, or may not be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// What is wrong.
    pub reason: String,
    /// What would change that.
    pub remedy: Option<String>,
}

impl Refusal {
    /// A refusal that somebody can do something about.
    pub fn with_remedy(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: Some(remedy.into()) }
    }

    /// Both in one line, for a part that alone is refused.
    #[must_use]
    pub fn with_its_remedy(&self) -> String {
        self.remedy.as_ref().map_or_else(|| self.reason.clone(), |remedy| format!("{} ({remedy})", self.reason))
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, remedy: None }
    }
}
