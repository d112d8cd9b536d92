package cluster

import "io"

// WriteTable writes what was found for a person to read.
func (i *Info) WriteTable(w io.Writer) error { return nil }
