package build

import (
	"context"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Run builds the programs of a release. Binaries that were built before from the
// same inputs are taken from the cache. A failure is an *Error, except that a
// cancelled context is returned as the context's own error.
func Run(ctx context.Context, o Options) (*Result, error) {
	return nil, &Error{Step: "build " + o.Release.String(), Cause: CauseUnknown, Message: "not yet"}
}

// Module builds mains of an ordinary module, with the same cache and errors as Run.
func Module(ctx context.Context, o ModuleOptions) (*Result, error) {
	return nil, &Error{Step: "build " + o.Module, Cause: CauseUnknown, Message: "not yet"}
}

// SourceInfo returns the version of Go that a release itself names, such as
// "1.18.3". What is in CacheDir or in Go's module cache needs no network;
// otherwise the release's module is downloaded, which the build needs anyway.
func SourceInfo(ctx context.Context, release versions.Release, o SourceOptions) (string, error) {
	return "", &Error{Step: "read " + release.String(), Cause: CauseUnknown, Message: "not yet"}
}
