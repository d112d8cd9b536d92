package pmksched

import "embed"

// Sources are the portable plugin API, the adapter, the bundled plugins and the extender, under
// their paths in this module. A scheduler or an extender is compiled from them, for any supported
// release.
//
//go:embed scheduler cmd/pmk-extender
var Sources embed.FS

// GoMod and GoSum are the go.mod and go.sum of this module. A plugin that `pmk-sched plugin new`
// creates uses their versions in its tests.
var (
	//go:embed go.mod
	GoMod []byte
	//go:embed go.sum
	GoSum []byte
)
