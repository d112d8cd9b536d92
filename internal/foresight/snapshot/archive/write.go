// Package archive implements the snapshot file format.
//
// A snapshot is a gzip-compressed tar archive. The first entry is header.json, a [snapshot.Header].
// One entry for each of its resources follows, in the same order: objects/NAME.jsonl with NAME =
// RESOURCE.VERSION or RESOURCE.VERSION.GROUP, such as objects/replicasets.v1.apps.jsonl. It
// contains one object a line, as JSON with sorted keys, ordered by namespace/name; both orders
// compare bytes. The entries' modes, owners and times are constant, so that two snapshots of the
// same state differ in the header only.
//
// A recording has another format in its header, and an entry more at the end: events.jsonl with one
// [snapshot.Event] a line, in time order.
//
// A file is input that others may have made: [Reader] accepts nothing that [Write] does not write,
// has limits, creates no file, and returns only the fields that schedulers read.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

const (
	// headerName is the first entry's name, eventsName the name of a recording's last entry.
	headerName = "header.json"
	eventsName = "events.jsonl"
	// Events is the resource for a recording's events in [Objects].
	Events = "recorded-events"
)

// entryName returns the name of the entry with a resource's objects.
func entryName(r snapshot.Resource) string {
	name := r.Resource + "." + r.Version
	if r.Group != "" {
		name += "." + r.Group
	}
	return "objects/" + name + ".jsonl"
}

// Objects are a snapshot's objects.
type Objects interface {
	// Each calls do with each object in a resource, with its group, in key order.
	Each(resource string, do func(key string, object []byte) error) error
}

// Write writes a snapshot, or a recording if the header describes one. Bytes for each resource in
// the header is the sum of its objects' lengths.
func Write(w io.Writer, h *snapshot.Header, objects Objects) error {
	compressed := gzip.NewWriter(w)
	out := tar.NewWriter(compressed)
	header, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return fmt.Errorf("write header of the snapshot: %w", err)
	}
	if err := writeEntry(out, headerName, int64(len(header)), func() error {
		_, err := out.Write(header)
		return err
	}); err != nil {
		return err
	}
	for _, r := range h.Resources {
		if err := writeLines(out, entryName(r), r.Bytes, r.Objects, r.GroupResource(), objects); err != nil {
			return err
		}
	}
	if e := h.Recording; e != nil {
		if err := writeLines(out, eventsName, e.Bytes, e.Events, Events, objects); err != nil {
			return err
		}
	}
	if err := errors.Join(out.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// writeLines writes an entry with a resource's objects, one a line.
func writeLines(out *tar.Writer, name string, bytes int64, count int, resource string, objects Objects) error {
	return writeEntry(out, name, bytes+int64(count), func() error { // a newline ends each
		return objects.Each(resource, func(_ string, object []byte) error {
			if _, err := out.Write(object); err != nil {
				return err
			}
			_, err := out.Write([]byte("\n"))
			return err
		})
	})
}

func writeEntry(out *tar.Writer, name string, size int64, write func() error) error {
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644,
		ModTime: time.Unix(0, 0), Format: tar.FormatPAX})
	if err == nil {
		err = write()
	}
	if err != nil {
		return fmt.Errorf("write %s of the snapshot: %w", name, err)
	}
	return nil
}
