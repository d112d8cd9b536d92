package build

import "strings"

// Cause is the kind of a failure.
type Cause string

// The causes of a failed build.
const (
	CauseUnknown       Cause = "unknown"
	CauseGoMissing     Cause = "go-missing"     // no go command, or one too old to fetch another
	CauseGitMissing    Cause = "git-missing"    // no git command
	CauseBranchUnknown Cause = "branch-unknown" // the release does not exist in the module proxy or repository
	CauseModuleMissing Cause = "module-missing" // the module proxy does not serve a module
	CauseToolchain     Cause = "toolchain"      // the version of Go is unavailable
	// CauseNoLibrary: Go versions before 1.21 are linked with glibc, which Alpine does not have.
	CauseNoLibrary Cause = "no-library"
	CauseChecksum  Cause = "checksum"   // the checksum of a module does not match
	CauseNoNetwork Cause = "no-network" // the module proxy cannot be reached
	CauseProxy     Cause = "proxy"      // the module proxy has an internal error
	CauseDiskFull  Cause = "disk-full"
	CauseCompile   Cause = "compile"
	CauseGit       Cause = "git"     // git failed for another reason
	CauseVersion   Cause = "version" // the binary prints another version
	// CauseArguments: two plugins have the same kind of arguments.
	CauseArguments Cause = "arguments"
)

// Error is a failed build.
type Error struct {
	// Step is the failed step: "compile kube-scheduler for linux/amd64".
	Step string
	// Cause is the kind of failure, and Message its description.
	Cause   Cause
	Message string
	// Modules are the modules that are unavailable, as path@version.
	Modules []string
	// Output is the end of the failed command's output.
	Output string
	// Try is a suggestion for the user. It may be empty.
	Try string
	// Err is the underlying error; it may be nil.
	Err error
}

// Error returns the step, the message and the end of the command's output.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString(e.Step + ": " + e.Message)
	if e.Output != "" {
		s.WriteString("\n  | " + strings.ReplaceAll(strings.TrimRight(e.Output, "\n"), "\n", "\n  | "))
	}
	return s.String()
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns the suggestion for the user, which may be empty.
func (e *Error) Hint() string { return e.Try }

// Invalid reports whether the user's input is wrong: the release does not exist, or plugins cannot
// be combined.
func (e *Error) Invalid() bool { return e.Cause == CauseBranchUnknown || e.Cause == CauseArguments }
