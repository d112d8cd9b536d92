package replace

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// Drift is one file that differs from the file that pmk-sched wrote.
type Drift struct {
	Path string `json:"path"`
	What string `json:"what"`
	Diff string `json:"diff,omitempty"`
}

// DriftError is returned when files have drifted or a replacement is unfinished.
type DriftError struct{ Here *HereStatus }

// Error lists the files with their diffs.
func (e *DriftError) Error() string {
	var b strings.Builder
	if e.Here.State == staticpod.Started {
		b.WriteString(unfinished(e.Here))
	} else {
		b.WriteString(drifted(e.Here))
	}
	for _, d := range e.Here.Drift {
		fmt.Fprintf(&b, "\n%s: %s\n%s", d.Path, d.What, d.Diff)
	}
	return strings.TrimRight(b.String(), "\n")
}

// CheckFailed reports that the status was read, and that there is drift.
func (e *DriftError) CheckFailed() bool { return true }

// Hint returns an instruction for the user.
func (e *DriftError) Hint() string {
	if e.Here.State == staticpod.Started {
		return resumeReplace
	}
	return repeatReplace
}

func unfinished(h *HereStatus) string {
	return fmt.Sprintf("the replacement of the default scheduler of node %s is unfinished: it stopped at step %q", h.Node,
		h.Step)
}

func drifted(h *HereStatus) string {
	return fmt.Sprintf("drift: files of the default scheduler of node %s have changed", h.Node)
}

func (d Deps) drift(h *HereStatus, b *staticpod.Backup, s *staticpod.Saved) error {
	current, err := d.Files.Read(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		h.Drift = append(h.Drift, Drift{Path: s.Path, What: "the file is missing"})
		return nil
	}
	if err != nil || staticpod.Hash(current.Data) == s.Written {
		return err
	}
	written, err := b.Load(s, staticpod.WrittenCopy)
	if err != nil {
		return err
	}
	what := "edited after the replacement"
	if s == b.Manifest() && !staticpod.Managed(current.Data) {
		if runsAsWanted(b, current.Data) {
			return nil // the node agent rewrote it, with the configuration that its settings name
		}
		what = "rewritten without the replacement"
		if layout, _ := inspect.LayoutNamed(b.Layout); layout.Rewriter != "" {
			what += ": " + layout.Rewriter + " does that when it starts"
		}
	}
	h.Drift = append(h.Drift, Drift{Path: s.Path, What: what, Diff: diffOf(s.Path, written.Data, current.Data)})
	return nil
}

// runsAsWanted reports whether a rewritten manifest runs the replacement's image with its
// configuration.
func runsAsWanted(b *staticpod.Backup, text []byte) bool {
	m, err := staticpod.Parse(b.Manifest().Path, text)
	if err != nil || len(b.Files) < 2 {
		return false
	}
	container, err := m.Container(schedulerContainer)
	if err != nil || container.Image != b.Image {
		return false
	}
	args, err := staticpod.Words(container, schedulerContainer)
	config, given := staticpod.Flag(args, "config")
	return err == nil && given && staticpod.OnHost(m.Pod, container, config) == b.ConfigFile
}

// diffOf returns the edits to a file since pmk-sched wrote it, as a unified diff.
func diffOf(path string, written, current []byte) string {
	return string(diff.Diff("written"+path, written, "current"+path, current))
}
