package build

import (
	"regexp"
	"strings"
)

// symptom recognizes a kind of failure in go or git output.
type symptom struct {
	pattern *regexp.Regexp
	cause   Cause
	message string
	try     string
}

const (
	tryNetwork = "check the network, GOPROXY and HTTPS_PROXY; modules in Go's module cache need no network"
	tryProxy   = "try again later, or set GOPROXY to another module proxy"
)

// symptoms are ordered by precedence: a full disk makes compilers fail too, and a proxy's internal
// error makes modules unavailable.
var symptoms = []symptom{
	{regexp.MustCompile(`(?i)no space left on device|disk quota exceeded|not enough space on the disk`),
		CauseDiskFull, "the disk is full",
		"free some space: a release needs about 3 GB in Go's module and build caches (`go clean -cache` empties the " +
			"latter), or move GOCACHE, GOMODCACHE and the build cache directory to a larger disk"},
	{regexp.MustCompile(`exec go[0-9.]+: no such file or directory`),
		CauseNoLibrary, "the version of Go needs glibc, which this machine does not have",
		"compile with a newer version, --go newest, or on a machine with glibc"},
	{
		regexp.MustCompile(
			`toolchain not available|download go[0-9][^ ]* for |invalid toolchain|checksum database disabled by GOSUMDB=off`),
		CauseToolchain, "the version of Go is unavailable",
		"check that GOPROXY serves the module golang.org/toolchain and that GOSUMDB is not off"},
	{regexp.MustCompile(`SECURITY ERROR|checksum mismatch`),
		CauseChecksum, "the checksum of a module does not match",
		"the module proxy serves other content than before; check GOPROXY, and empty the module cache with `go clean " +
			"-modcache`"},
	{regexp.MustCompile(`: 5[0-9][0-9] [A-Z]|: 429 |status code 5[0-9][0-9]`),
		CauseProxy, "the module proxy has an internal error", tryProxy},
	{
		regexp.MustCompile(
			`(?i)no such host|connection refused|connection reset|network is unreachable|no route to host|i/o timeout|TLS handshake|x509: |server misbehaving|Temporary failure in name resolution|could not resolve host|context deadline exceeded|module lookup disabled by GOPROXY=off|unexpected EOF`),
		CauseNoNetwork, "the module proxy cannot be reached", tryNetwork},
	{
		regexp.MustCompile(
			`404 Not Found|410 Gone|403 Forbidden|unknown revision|invalid version|no matching versions|not available|missing go\.sum entry|cannot find module providing|no required module provides`),
		CauseModuleMissing, "the module proxy does not serve a module", "check that GOPROXY serves it"},
	{regexp.MustCompile(`build constraints exclude all Go files`),
		CauseCompile, "a package has no Go files for a build without cgo (CGO_ENABLED=0), which images without a C library need",
		"use a package without `import \"C\"`, or see its //go:build lines if it does not have it"},
	{regexp.MustCompile(`(?m)^# [^ ]+|\.go:[0-9]+(:[0-9]+)?: |import cycle`),
		CauseCompile, "the source does not compile", "see the compiler output above"},
}

// diagnose finds the cause of a failed command in its output.
func diagnose(step, output string, err error) *Error {
	e := &Error{Step: step, Cause: CauseUnknown, Output: output, Err: err, Modules: modulesIn(output)}
	for _, s := range symptoms {
		if s.pattern.MatchString(output) {
			e.Cause, e.Message, e.Try = s.cause, s.message, s.try
			break
		}
	}
	switch {
	case e.Cause == CauseModuleMissing && len(e.Modules) > 0:
		e.Message = "the module proxy does not serve " + strings.Join(e.Modules, ", ")
	case e.Cause == CauseUnknown && output == "":
		e.Message = err.Error()
	case e.Cause == CauseUnknown:
		e.Message = "the command failed: " + err.Error()
	}
	return e
}

// unserved matches the modules that go could not read, as path@version.
var unserved = regexp.MustCompile(
	`([a-z0-9][a-zA-Z0-9._~/-]*\.[a-zA-Z0-9._~/-]+@v[0-9][^\s:]*): (?:reading|invalid version|unrecognized|verifying|module lookup)`)

func modulesIn(output string) []string {
	var found []string
	seen := map[string]bool{}
	for _, match := range unserved.FindAllStringSubmatch(output, -1) {
		if !seen[match[1]] {
			seen[match[1]] = true
			found = append(found, match[1])
		}
	}
	return found
}
