package archive

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Limits bound the input to a [Reader]. Zero values mean the defaults.
type Limits struct {
	Bytes       int64 // of everything, uncompressed; by default 8 GiB
	Objects     int   // by default 2,000,000
	Events      int   // of a recording; by default [MaxEvents]
	ObjectBytes int   // of one object; by default 4 MiB: etcd stores 1.5 MiB
}

// MaxEvents is the largest number of events in a recording, which 5,000 nodes have in a day. A
// replay keeps each pod's life in memory.
const MaxEvents = 10_000_000

// headerBytes is the longest header.
const headerBytes = 1 << 20

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 8 << 30
	}
	if l.Objects == 0 {
		l.Objects = 2_000_000
	}
	if l.Events == 0 {
		l.Events = MaxEvents
	}
	if l.ObjectBytes == 0 {
		l.ObjectBytes = 4 << 20
	}
	return l
}

// Reader reads a snapshot from its beginning to its end.
type Reader struct {
	header *snapshot.Header
	limits Limits
	tar    *tar.Reader
	text   io.Reader // the decompressed archive
	kinds  []*snapshot.Kind
	// passed counts the resources whose entries were read.
	passed int
}

// NewReader reads the header. If the file is not a snapshot, the error is about the input (package
// problem).
func NewReader(r io.Reader, limits Limits) (*Reader, error) {
	return newReader(r, limits, snapshot.Format)
}

func newReader(r io.Reader, limits Limits, format string) (*Reader, error) {
	limits = limits.withDefaults()
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return nil, invalid("not a gzip file: %w", err)
	}
	text := &bounded{r: compressed, left: limits.Bytes}
	in := &Reader{limits: limits, tar: tar.NewReader(text), text: text}
	if err := in.next(headerName); err != nil {
		return nil, err
	}
	head, err := io.ReadAll(io.LimitReader(in.tar, headerBytes+1))
	switch {
	case err != nil:
		return nil, invalid("%s: %w", headerName, err)
	case len(head) > headerBytes:
		return nil, invalid("%s is longer than %d bytes", headerName, headerBytes)
	}
	h := &snapshot.Header{}
	if err := json.Unmarshal(head, h); err != nil {
		return nil, invalid("%s: %w", headerName, err)
	}
	in.header = h
	return in, in.checkHeader(format)
}

// invalid returns an error about the file.
func invalid(format string, args ...any) error {
	return problem.Invalidf("write it with `pmk-sched snapshot`", "read snapshot: "+format, args...)
}

// checkHeader checks the header's format, version and resources, and finds the resources' kinds.
func (r *Reader) checkHeader(format string) error {
	h := r.header
	switch {
	case h.Format != format && h.Format == snapshot.RecordingFormat:
		return problem.Invalidf("`pmk-sched simulate replay` reads recordings", "read snapshot: it is a recording")
	case h.Format != format:
		return invalid("expected the format %s, got %q", format, h.Format)
	case (h.Format == snapshot.RecordingFormat) != (h.Recording != nil):
		return invalid("the header of a recording has the field recording, the header of a snapshot has not")
	case h.Version != snapshot.Version:
		return problem.Invalidf("use the version of pmk-sched that wrote it, "+h.CreatedBy+", or a newer one",
			"read snapshot: expected version %d of the format, got %d", snapshot.Version, h.Version)
	}
	known := snapshot.Kinds()
	seen := map[string]bool{}
	for _, res := range h.Resources {
		kind, err := kindOf(known, res)
		if err != nil {
			return err
		}
		if seen[kind.GroupResource()] {
			return invalid("%s are in it twice", kind.GroupResource())
		}
		seen[kind.GroupResource()] = true
		r.kinds = append(r.kinds, kind)
	}
	return nil
}

// kindOf returns a resource's kind in a header.
func kindOf(known []*snapshot.Kind, r snapshot.Resource) (*snapshot.Kind, error) {
	if r.Custom {
		kind, err := snapshot.CustomKind(r.GroupResource())
		if err != nil {
			return nil, invalid("%w", err)
		}
		kind.Name, kind.Namespaced = r.Kind, r.Namespaced
		return kind, nil
	}
	kind, version := snapshot.Find(known, snapshot.APIVersion(r.Group, r.Version), r.Kind)
	if kind == nil || kind.Resource != r.Resource || kind.Namespaced != r.Namespaced {
		return nil, invalid("%s %s (%s) are not read by a scheduler", r.Resource, snapshot.APIVersion(r.Group, version),
			r.Kind)
	}
	return kind, nil
}

// Header returns the snapshot's header.
func (r *Reader) Header() snapshot.Header { return *r.header }

// next goes to the next entry, which must have a name.
func (r *Reader) next(name string) error {
	h, err := r.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return invalid("%s is missing", name)
	case err != nil:
		return invalid("%w", err)
	case h.Name != name || h.Typeflag != tar.TypeReg:
		return invalid("expected the file %s, got %q", name, h.Name)
	}
	return nil
}

// Each calls do with each object, decoded JSON whose numbers are [json.Number], in the header's
// order. It can be called once.
func (r *Reader) Each(do func(kind *snapshot.Kind, version string, object map[string]any) error) error {
	total := 0
	for i, res := range r.header.Resources {
		if err := r.next(entryName(res)); err != nil {
			return err
		}
		r.passed++
		count, err := r.eachLine(r.kinds[i], res, r.limits.Objects-total, do)
		if err != nil {
			return err
		}
		if count != res.Objects {
			return invalid("%s has %d objects, the header %d", entryName(res), count, res.Objects)
		}
		total += count
	}
	if r.header.Recording != nil {
		return nil // the events follow
	}
	return r.end()
}

// end checks that no entry is left, and the checksum, which follows the last byte.
func (r *Reader) end() error {
	switch h, err := r.tar.Next(); {
	case err == nil:
		return invalid("unexpected file %q", h.Name)
	case !errors.Is(err, io.EOF):
		return invalid("%w", err)
	}
	if _, err := io.Copy(io.Discard, r.text); err != nil {
		return invalid("%w", err)
	}
	return nil
}

// eachLine reads the objects of one resource, at most limit.
func (r *Reader) eachLine(kind *snapshot.Kind, res snapshot.Resource, limit int,
	do func(*snapshot.Kind, string, map[string]any) error) (count int, err error) {
	lines := bufio.NewScanner(r.tar)
	lines.Buffer(make([]byte, 0, min(64<<10, r.limits.ObjectBytes)), r.limits.ObjectBytes)
	before := ""
	for lines.Scan() {
		if count++; count > limit {
			return count, invalid("more than %d objects", r.limits.Objects)
		}
		object, key, err := decode(kind, res, lines.Bytes())
		if err != nil {
			return count, invalid("%s: line %d: %w", entryName(res), count, err)
		}
		if count > 1 && key <= before {
			return count, invalid("%s: line %d: %s comes after %s", entryName(res), count, key, before)
		}
		before = key
		if err := do(kind, res.Version, object); err != nil {
			return count, err
		}
	}
	if err := lines.Err(); err != nil {
		return count, invalid("%s: line %d: %w", entryName(res), count+1, err)
	}
	return count, nil
}

// decode returns the object in a line, without the fields that schedulers do not read.
func decode(kind *snapshot.Kind, res snapshot.Resource, line []byte) (object map[string]any, key string, err error) {
	if object, err = snapshot.Decode(line); err != nil {
		return nil, "", err
	}
	if object["apiVersion"] != snapshot.APIVersion(res.Group, res.Version) || object["kind"] != res.Kind {
		return nil, "", fmt.Errorf("expected %s %s, got %v %v", snapshot.APIVersion(res.Group, res.Version), res.Kind,
			object["apiVersion"], object["kind"])
	}
	object = kind.Strip(object)
	key, err = kind.Key(object)
	return object, key, err
}

// errUnknownKind is the error for an event about a kind that the header does not have.
func errUnknownKind(o map[string]any) error {
	return fmt.Errorf("the header has no kind %v %v", o["apiVersion"], o["kind"])
}

// errTooLarge is the error for a snapshot that is larger than the limit.
var errTooLarge = errors.New("more bytes than the limit")

// bounded fails after a number of bytes: a small gzip file can have very many.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
