package contextio

import "io"

// LimitedReader reads from R, and fails with Err as soon as R has more than N bytes. N is the
// number of bytes that may still be read.
type LimitedReader struct {
	R   io.Reader
	N   int64
	Err error
}

// Read reads from R.
func (l *LimitedReader) Read(p []byte) (int, error) {
	if l.N < 0 {
		return 0, l.Err
	}
	if int64(len(p)) > l.N+1 {
		p = p[:l.N+1] // one more byte tells a longer content
	}
	n, err := l.R.Read(p)
	if l.N -= int64(n); l.N < 0 {
		return n - 1, l.Err
	}
	return n, err
}
