package capture

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Spool is a file with objects, and their order in memory. Close it.
type Spool struct {
	file    *os.File
	out     *bufio.Writer
	size    int64
	entries map[string][]entry // by resource
}

// entry is an object's position in the file.
type entry struct {
	key    string
	offset int64
	length int
}

// NewSpool makes a spool in a directory, which should be private: the objects in its file are not
// anonymized yet.
func NewSpool(dir string) (*Spool, error) {
	file, err := os.CreateTemp(dir, "objects-*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("make a file for the objects of the snapshot: %w", err)
	}
	return &Spool{file: file, out: bufio.NewWriterSize(file, 1<<18), entries: map[string][]entry{}}, nil
}

// Close removes the file.
func (s *Spool) Close() error {
	return errors.Join(s.file.Close(), os.Remove(filepath.Clean(s.file.Name())))
}

// Add adds an object of a resource, with the key that determines its place. An object replaces the
// one with the same key.
func (s *Spool) Add(resource, key string, object []byte) error {
	if _, err := s.out.Write(object); err != nil {
		return fmt.Errorf("store objects of the snapshot: %w", err)
	}
	s.entries[resource] = append(s.entries[resource], entry{key: key, offset: s.size, length: len(object)})
	s.size += int64(len(object))
	return nil
}

// Count returns how many objects of a resource have been added.
func (s *Spool) Count(resource string) int { return len(s.entries[resource]) }

// Truncate removes the objects of a resource that were added after the first n.
func (s *Spool) Truncate(resource string, n int) { s.entries[resource] = s.entries[resource][:n] }

// Sort orders a resource's objects by their keys, and removes replaced objects. It returns the
// number of remaining objects and their total length.
func (s *Spool) Sort(resource string) (count int, bytes int64) {
	list := s.entries[resource]
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	kept := list[:0]
	for i, e := range list {
		if i+1 == len(list) || list[i+1].key != e.key {
			kept = append(kept, e)
			bytes += int64(e.length)
		}
	}
	s.entries[resource] = kept
	return len(kept), bytes
}

// Each calls do with the key and the text for a resource's objects, in their order. The text is
// valid until do returns.
func (s *Spool) Each(resource string, do func(key string, object []byte) error) error {
	if err := s.out.Flush(); err != nil {
		return fmt.Errorf("store objects of the snapshot: %w", err)
	}
	var buffer []byte
	at := int64(-1)
	in := bufio.NewReaderSize(nil, 1<<18)
	for _, e := range s.entries[resource] {
		if e.offset != at { // the API server lists in order, so that this is rare
			in.Reset(io.NewSectionReader(s.file, e.offset, s.size-e.offset))
		}
		at = e.offset + int64(e.length)
		buffer = slices.Grow(buffer[:0], e.length)[:e.length]
		if _, err := io.ReadFull(in, buffer); err != nil {
			return fmt.Errorf("read stored objects of the snapshot: %w", err)
		}
		if err := do(e.key, buffer); err != nil {
			return err
		}
	}
	return nil
}
