package safeio_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
)

func TestReadingAndWritingEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	r, w := safeio.NewReader(ctx, strings.NewReader("abcd")), safeio.NewWriter(ctx, &out)
	p := make([]byte, 2)
	if n, err := io.ReadFull(r, p); n != 2 || err != nil || string(p) != "ab" {
		t.Errorf("read %q, %v", p[:n], err)
	}
	if n, err := w.Write(p); n != 2 || err != nil || out.String() != "ab" {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
	cancel()
	if n, err := r.Read(p); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if n, err := w.Write(p); n != 0 || !errors.Is(err, context.Canceled) || out.String() != "ab" {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
}
