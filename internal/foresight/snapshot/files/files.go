// Package files reads a snapshot's objects from files: other snapshots, the output of `kubectl get
// -o yaml` or `-o json`, directories with manifests, and traces.
package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Stdin is the path of standard input.
const Stdin = "-"

// Sink gets the objects: package spool implements it.
type Sink interface {
	// Add adds an object to a resource, by the resource's name and group, with the key that determines
	// its place.
	Add(resource, key string, object []byte) error
}

// Result describes the objects that were read.
type Result struct {
	// Resources are the object kinds, without their number, in the order of [snapshot.Kinds].
	Resources []snapshot.Resource
	// Headers are the headers from the snapshots among the files.
	Headers []snapshot.Header
	// Ignored counts the objects that no scheduler reads, by kind.
	Ignored map[string]int
	// Unnamed are the custom resources among them, by resource and group.
	Unnamed map[string]bool
	Notes   []string
	// Doubts are signs that objects or fields are missing, for the user.
	Doubts []string
}

// Options are the input for Read. Pods counts the pods. It may be nil.
type Options struct {
	Paths []string // files, directories, or Stdin
	Stdin io.Reader
	Pods  *snapshot.PodCounts
	// Custom keeps all custom resources, and Resources keeps those with a plural and a group.
	Custom    bool
	Resources []string
	// Changed gets a trace's pods when they are created, scheduled and removed, with the time since
	// the trace's beginning. If it is nil, they are the snapshot's pending pods.
	Changed func(at time.Duration, gone bool, object []byte) error
}

// Read reads the objects in the files into a sink. If several objects of a kind have the same name,
// the last one counts.
func Read(ctx context.Context, kinds []*snapshot.Kind, sink Sink, o Options) (*Result, error) {
	r := &reader{sink: sink, kinds: kinds, o: o, seen: map[string]*snapshot.Resource{},
		result: &Result{Ignored: map[string]int{}, Unnamed: map[string]bool{}}}
	r.source.do, r.source.reads = r.add, r.isRead
	if err := each(ctx, o.Paths, o.Stdin, r.stream, r.trace); err != nil {
		return nil, err
	}
	if err := r.source.end(); err != nil {
		return nil, err
	}
	if err := r.addCustom(); err != nil {
		return nil, err
	}
	r.result.Doubts = r.source.notes
	for _, kind := range r.kinds {
		if found := r.seen[kind.GroupResource()]; found != nil {
			r.result.Resources = append(r.result.Resources, *found)
		}
	}
	if len(r.result.Resources) == 0 {
		return nil, problem.Invalidf("", "read %q: no object that a scheduler reads", o.Paths)
	}
	return r.result, nil
}

// Manifests calls do with each object in files, directories and standard input, in YAML or JSON,
// with all its fields. The result are notes on fields that are not known and on files that may not
// be complete.
func Manifests(ctx context.Context, paths []string, stdin io.Reader, do func(map[string]any) error) ([]string, error) {
	f := &source{do: do, reads: func(string, string) bool { return true }}
	err := each(ctx, paths, stdin, f.stream, nil)
	if err == nil {
		err = f.end()
	}
	return f.notes, err
}

// Text calls do with each object in a JSON text that is part of a file, at a line. The result are
// the notes from [Manifests].
func Text(text []byte, line int, do func(map[string]any) error) ([]string, error) {
	f := &source{do: do, reads: func(string, string) bool { return true }}
	s := newJSONStream(bytes.NewReader(text), f)
	s.line = func() int { return line }
	err := s.document(0)
	if err == nil {
		err = f.end()
	}
	return f.notes, s.invalidSyntax(err)
}

// stream reads a file in any format. start is the file's beginning, which shows the format.
type stream func(text *bufio.Reader, start []byte) error

// each reads files, standard input, and the files in directories that look like manifests, ordered
// by name. csv reads the CSV files in directories. If it is nil, they are ignored.
func each(ctx context.Context, paths []string, stdin io.Reader, read, csv stream) error {
	for _, path := range paths {
		if path == Stdin {
			if err := readStream(ctx, "standard input", stdin, read); err != nil {
				return err
			}
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return problem.Invalidf("", "read objects: %w", err)
		}
		if !info.IsDir() {
			if err := readFile(ctx, path, read); err != nil {
				return err
			}
			continue
		}
		err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("read objects: %w", err)
			}
			switch extension := filepath.Ext(file); {
			case !entry.Type().IsRegular():
			case slices.Contains([]string{".yaml", ".yml", ".json"}, extension):
				return readFile(ctx, file, read)
			case extension == ".csv" && csv != nil:
				return readFile(ctx, file, csv)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gzipMagic returns the first bytes of a gzip-compressed file (RFC 1952, section 2.3.1).
func gzipMagic() []byte { return []byte{0x1f, 0x8b} }

// IsArchive reports whether a path is a file in the snapshot format. A file that cannot be read is
// not.
func IsArchive(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, len(gzipMagic()))
	_, err = io.ReadFull(f, start)
	return err == nil && bytes.Equal(start, gzipMagic())
}

func readFile(ctx context.Context, path string, read stream) error {
	f, err := os.Open(path)
	if err != nil {
		return problem.Invalidf("", "read objects: %w", err)
	}
	defer f.Close()
	return readStream(ctx, path, f, read)
}

// isUnicodeMark reports whether a text begins with the UTF-8 or UTF-16 mark, as PowerShell and
// Windows' editors write it.
func isUnicodeMark(start []byte) bool {
	return bytes.HasPrefix(start, []byte{0xef, 0xbb, 0xbf}) || bytes.HasPrefix(start, []byte{0xff, 0xfe}) ||
		bytes.HasPrefix(start, []byte{0xfe, 0xff})
}

func readStream(ctx context.Context, name string, in io.Reader, read stream) error {
	in = safeio.NewReader(ctx, in)
	text := bufio.NewReaderSize(in, 1<<16)
	if mark, err := text.Peek(3); err == nil && isUnicodeMark(mark) {
		text = bufio.NewReaderSize(transform.NewReader(text, unicode.BOMOverride(transform.Nop)), 1<<16)
	}
	start, err := text.Peek(512)
	if err == nil || errors.Is(err, io.EOF) {
		err = read(text, start)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
