package pmksched

import "embed"

// Sources are the portable plugin API, its adapters and the shipped plugins, under their paths in this module. They are
// compiled for whatever release a scheduler is built for.
//
//go:embed scheduler
var Sources embed.FS

// GoMod and GoSum are this module's own. A plugin that is begun with `pmk-sched plugin new` tests itself with the
// versions that stand there.
var (
	//go:embed go.mod
	GoMod []byte
	//go:embed go.sum
	GoSum []byte
)
