package extender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Limits of bodies and answers that clients delay.
const (
	// stallTime is the maximum time for a body or an answer in addition to its size over clientRate.
	stallTime  = 2 * time.Second
	clientRate = 4 << 20 // bytes per second
	// quickRate is a body's rate, in bytes per second, at which it does not become late.
	quickRate = 32 << 20
	// firstPart is the capacity for a body that has not begun to arrive.
	firstPart = 16 << 10
	// Requests that have not arrived in full or wait for memory, and unread answers.
	maxWaiting, maxWaitingPerAddress = 256, 128
)

// body is the body of a request while it arrives and waits for memory. Until stopWaiting it is in
// the crowd of waiting requests.
type body struct {
	verb
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	charge  *charge
	content []byte
	began   time.Time // later by the time that the body has waited for memory
	crowded atomic.Bool
	// ctx ends when the body has to make room for another body.
	ctx    context.Context
	cancel context.CancelFunc
}

var errCrowded = errors.New("too many requests are unfinished: other requests took the place of this one")

// newBody returns a request's body. It waits for its client from now on.
func (v verb) newBody(w http.ResponseWriter, r *http.Request) *body {
	b := &body{verb: v, w: w, r: r, control: http.NewResponseController(w), charge: &charge{memory: v.memory},
		began: time.Now()}
	b.ctx, b.cancel = context.WithCancel(r.Context())
	v.waiting.enter(b, r.RemoteAddr, b.began, b.end)
	return b
}

// end makes the body give up its place and its memory.
func (b *body) end() {
	b.crowded.Store(true)
	b.cancel()
	_ = b.control.SetReadDeadline(time.Unix(1, 0))
}

// stopWaiting is called when the body needs neither its client nor memory anymore.
func (b *body) stopWaiting() {
	b.waiting.leave(b)
	b.memory.large.leave(b)
	b.cancel()
}

// receive reads the body unless it is too large or too slow, and takes the memory to decode it.
func (b *body) receive() (status int, err error) {
	limit := b.limit()
	tooLarge := fmt.Errorf("the body has more than %d bytes; let the scheduler send names only (nodeCacheCapable: true)",
		limit)
	if b.r.ContentLength > limit {
		return http.StatusRequestEntityTooLarge, tooLarge
	}
	allowed, err := b.readParts(http.MaxBytesReader(b.w, b.r.Body, limit))
	b.metrics.bytes.WithLabelValues(b.name, "in").Add(float64(len(b.content)))
	if err == nil {
		// From here on, while the policies run, only the end of the connection matters.
		_ = b.control.SetReadDeadline(time.Time{})
		err = b.takeMemory()
	}
	var large *sizeError
	switch {
	case err == nil:
		return http.StatusOK, nil
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, err
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge, tooLarge
	case b.crowded.Load():
		return http.StatusServiceUnavailable, errCrowded
	case errors.Is(err, errNoMemory):
		return http.StatusServiceUnavailable, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, fmt.Errorf("only %d bytes of the body arrived within %s", len(b.content), allowed)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return http.StatusBadRequest, fmt.Errorf("the body is truncated after %d bytes", len(b.content))
	}
	return http.StatusBadRequest, err
}

// takeMemory takes the memory for decoding the body and for its answer.
func (b *body) takeMemory() error {
	bound := b.limits().pod()
	if b.name == VerbPreempt {
		bound = b.limits().victims()
	}
	cost, err := b.memory.cost(b.content, bound)
	if err != nil {
		return err
	}
	return b.waitForMemory(cost)
}

// waitForMemory takes memory. Meanwhile the body does not wait for its client, and is not late.
func (b *body) waitForMemory(bytes int64) error {
	b.memory.large.renew(b, time.Now().Add(memoryWait), false)
	return b.charge.grow(b.ctx, bytes)
}

// readParts reads to the end. It returns the time that the body may take for what has arrived.
func (b *body) readParts(from io.Reader) (allowed time.Duration, err error) {
	for {
		if len(b.content) == cap(b.content) {
			if err := b.growContent(); err != nil {
				return 0, err
			}
		}
		allowed = min(b.bodyTime, timeFor(len(b.content)))
		// A connection without deadlines, as in a test, has no time limit.
		_ = b.control.SetReadDeadline(b.began.Add(allowed))
		if b.crowded.Load() {
			return 0, errCrowded
		}
		n, err := from.Read(b.content[len(b.content):cap(b.content)])
		b.content = b.content[:len(b.content)+n]
		b.memory.large.renew(b, b.expected(), false)
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return allowed, err
		}
	}
}

// expected returns the time at which a quick client would have sent what has arrived.
func (b *body) expected() time.Time {
	return b.began.Add(time.Duration(len(b.content)) * time.Second / quickRate)
}

// timeFor returns the time that a client may take for a number of bytes.
func timeFor(bytes int) time.Duration {
	return stallTime + time.Duration(bytes)*time.Second/clientRate
}

// growContent makes room for more of the body. The memory for a small one is reserved for each
// waiting request. A larger one doubles, up to its announced size, and is charged with its copy.
func (b *body) growContent() error {
	announced, small := b.r.ContentLength+1, b.memory.smallBody
	next := int64(firstPart)
	switch have := int64(cap(b.content)); {
	case have == 0:
	case have < announced && announced <= small:
		next = announced
	case have < announced:
		next = min(2*have, announced)
	default:
		next = 2 * have
	}
	if next > small {
		began := time.Now()
		if err := b.waitForMemory(2 * next); err != nil {
			return err
		}
		b.began = b.began.Add(time.Since(began))
		if int64(cap(b.content)) <= small {
			b.memory.large.enter(b, b.r.RemoteAddr, b.expected(), b.end)
		}
	}
	b.content = append(make([]byte, 0, next), b.content...)
	return nil
}

// writeAnswer writes an answer to a client that may read it slowly.
func (v verb) writeAnswer(w http.ResponseWriter, r *http.Request, content []byte) {
	control, began := http.NewResponseController(w), time.Now()
	// A connection without deadlines, as in a test, has no time limit.
	_ = control.SetWriteDeadline(began.Add(timeFor(len(content))))
	v.waiting.enter(r, r.RemoteAddr, began, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
	defer v.waiting.leave(r)
	v.write(w, http.StatusOK, "application/json", content)
}
