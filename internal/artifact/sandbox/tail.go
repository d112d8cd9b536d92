package sandbox

// textLimit is the maximum number of bytes kept from a program's output.
const textLimit = 256 << 10

// tail keeps the end of its input.
type tail struct{ text []byte }

// Write never fails, so that a program with too much output is not blocked.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if excess := len(t.text) - textLimit; excess > textLimit {
		t.text = append(t.text[:0], t.text[excess:]...)
	}
	return len(p), nil
}

func (t *tail) end() []byte { return t.text[max(0, len(t.text)-textLimit):] }
