package command

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// stepWriter is standard error. On a terminal it keeps the running step's line below the log. Its
// callers ignore errors, which cannot be reported elsewhere.
type stepWriter struct {
	mu       sync.Mutex
	w        io.Writer
	escaper  escaper
	terminal bool
	shown    bool
	// reported is the time when a step started or last printed its progress.
	reported time.Time
}

// progressInterval is the time between two lines about a step's progress, except on a terminal.
const progressInterval = 30 * time.Second

// progressDue reports whether nothing was reported for an interval, and if so, sets the last
// report's time to now.
func (s *stepWriter) progressDue(now time.Time, interval time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.reported) < interval {
		return false
	}
	s.reported = now
	return true
}

// shortStep is the duration below which a step's line has no duration: it would be 0.0 seconds.
const shortStep = 50 * time.Millisecond

const clearLine = "\r\033[K"

// Write writes anything but a step, with escaped control characters.
func (s *stepWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if _, err := s.w.Write(s.escaper.escape(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *stepWriter) running(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		return
	}
	_, _ = io.WriteString(s.w, clearLine+cut("… "+Escape(name), terminalWidth(s.w)))
	s.shown = true
}

// cut returns the part of a line that fits a terminal: clearLine does not clear a second line. No
// columns mean any number.
func cut(line string, columns int) string {
	if all := []rune(line); columns > 0 && len(all) > columns {
		return string(all[:columns])
	}
	return line
}

func (s *stepWriter) finished(mark, name string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	seconds := fmt.Sprintf(" (%.1fs)", took.Seconds())
	if took < shortStep {
		seconds = ""
	}
	_, _ = fmt.Fprintf(s.w, "%s %s%s\n", mark, Escape(name), seconds)
}

func (s *stepWriter) clear() {
	if s.shown {
		_, _ = io.WriteString(s.w, clearLine)
		s.shown = false
	}
}

// Sync implements zapcore.WriteSyncer; standard error is not buffered.
func (s *stepWriter) Sync() error { return nil }
