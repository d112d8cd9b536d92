// Package safeio does I/O that can be interrupted: files that are replaced when their new content
// is complete, locks and temporary directories that a killed run does not leave behind, and readers
// and writers that stop when a context ends.
package safeio

import (
	"context"
	"io"
)

// NewReader returns a reader of r that fails when ctx has ended.
func NewReader(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

// NewWriter returns a writer to w that fails when ctx has ended.
func NewWriter(ctx context.Context, w io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return w.Write(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
