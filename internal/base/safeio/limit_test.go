package safeio

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLimitedReaderFailsOnLongerContent(t *testing.T) {
	long := errors.New("too long")
	for _, c := range []struct {
		limit int64
		want  string
		err   error
	}{{7, "content", nil}, {8, "content", nil}, {6, "conten", long}, {0, "", long}} {
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader("content"), "byte by byte": iotest.OneByteReader(strings.NewReader("content")),
		} {
			l := &LimitedReader{R: r, N: c.limit, Err: long}
			got, err := io.ReadAll(l)
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("limit %d, %s: got %q, %v", c.limit, name, got, err)
			}
			if n, err := l.Read(make([]byte, 1)); c.err != nil && (n != 0 || !errors.Is(err, long)) {
				t.Errorf("limit %d, %s: it goes on after the error", c.limit, name)
			}
		}
	}
}

func TestLimitedReaderFillsNoBufferBeyondTheLimit(t *testing.T) {
	long := errors.New("too long")
	for size := range 8 {
		l := &LimitedReader{R: strings.NewReader("content"), N: 4, Err: long}
		n, err := l.Read(make([]byte, size))
		if n != min(size, 4) || (err != nil) != (size > 4) {
			t.Errorf("a buffer of %d bytes: read %d, %v", size, n, err)
		}
	}
}
