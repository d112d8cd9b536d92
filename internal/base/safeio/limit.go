package safeio

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
	// One more byte shows that the content is longer.
	n, err := l.R.Read(p[:min(int64(len(p)), l.N+1)])
	if l.N -= int64(n); l.N < 0 {
		return n - 1, l.Err
	}
	return n, err
}
