package build

import "strings"

// Cause is the kind of a failure.
type Cause string

// The causes that a failing build is sorted into.
const (
	CauseUnknown       Cause = "unknown"
	CauseInput         Cause = "input"          // an option that cannot be used
	CauseGoMissing     Cause = "go-missing"     // no go command, or one too old to fetch another
	CauseGitMissing    Cause = "git-missing"    // no git command
	CauseBranchUnknown Cause = "branch-unknown" // the release does not exist where it was looked for
	CauseModuleMissing Cause = "module-missing" // a module cannot be had from the module proxy
	CauseToolchain     Cause = "toolchain"      // the Go version cannot be had
	CauseChecksum      Cause = "checksum"       // a module is not what the checksums say
	CauseNoNetwork     Cause = "no-network"     // nobody could be reached
	CauseProxy         Cause = "proxy"          // the module proxy answers with an error of its own
	CauseDiskFull      Cause = "disk-full"
	CauseCompile       Cause = "compile"
	CauseGit           Cause = "git"     // git failed for another reason
	CauseVersion       Cause = "version" // the binary does not say that it is the release
)

// Error is a build that failed.
type Error struct {
	// Step is what was being done, to what: "compile kube-scheduler for linux/amd64".
	Step string
	// Cause is the kind of failure and Message says it in words.
	Cause   Cause
	Message string
	// Modules names the modules that could not be had, as path@version.
	Modules []string
	// Output is the end of what the failing command itself printed.
	Output string
	// Try is what to do about it.
	Try string
	// Err is the error below, if there is one.
	Err error
}

// Error returns step, cause and the end of the command's own output.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString(e.Step + ": " + e.Message)
	if e.Output != "" {
		s.WriteString("\n  | " + strings.ReplaceAll(strings.TrimRight(e.Output, "\n"), "\n", "\n  | "))
	}
	return s.String()
}

// Unwrap returns the error below.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what to do about it, or "".
func (e *Error) Hint() string { return e.Try }

// Invalid reports whether the person asked for something that does not exist or
// cannot be used, as against something that went wrong.
func (e *Error) Invalid() bool {
	return e.Cause == CauseInput || e.Cause == CauseBranchUnknown
}
