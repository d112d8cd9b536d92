package pmksched

import "embed"

// Sources are the portable plugin API, its adapters, the shipped plugins and the extender, under their paths in this module. They
// are compiled for whatever release a scheduler is built for, or into an extender.
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
