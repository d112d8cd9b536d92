package pmksched

import "embed"

// Sources are the portable plugin API, its adapters and the shipped plugins, under their paths in this module. They are
// compiled for whatever release a scheduler is built for.
//
//go:embed scheduler
var Sources embed.FS
