package pmksched

import "embed"

// Sources are the portable plugin API, the adapter, the shipped plugins and the extender, under their paths in this module.
// A scheduler or an extender is compiled from them, for any supported release.
//
//go:embed scheduler cmd/pmk-extender
var Sources embed.FS

// GoMod and GoSum are this module's own. A plugin that is begun with `pmk-sched plugin new` tests itself with the
// versions that stand there.
var (
	//go:embed go.mod
	GoMod []byte
	//go:embed go.sum
	GoSum []byte
)
