//! Findings as `JUnit` XML, which most systems for continuous integration read: a test suite for each file, a test case for each finding. An error
//! is a failure; warnings and notes are cases that pass, with their text as output.

use crate::findings::FileReport;
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};

/// The report of these files.
///
/// # Errors
/// What the writer of XML cannot write.
pub fn report(files: &[FileReport<'_>]) -> Result<String, SerializeError> {
    let mut report = Report::new("chipless check");
    for file in files {
        let mut suite = TestSuite::new(file.path);
        if file.findings.is_empty() {
            suite.add_test_case(TestCase::new("clean", TestCaseStatus::success()));
        }
        for finding in &file.findings {
            let item = finding.location.item;
            let name = if item.is_empty() {
                finding.code.to_owned()
            } else {
                format!("{} {item}", finding.code)
            };
            let text = format!("{}\n{}", finding.message, finding.hint);
            let mut case = if finding.severity == "error" {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type(finding.code);
                status.set_message(finding.message);
                status.set_description(text);
                TestCase::new(name, status)
            } else {
                let mut case = TestCase::new(name, TestCaseStatus::success());
                case.set_system_out(format!("{}: {text}", finding.severity));
                case
            };
            case.set_classname(file.path);
            suite.add_test_case(case);
        }
        report.add_test_suite(suite);
    }
    report.to_string()
}
