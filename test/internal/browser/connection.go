//go:build linux

package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// params are the parameters of a command.
type params map[string]any

// message is a command, an answer or an event of the DevTools protocol
// (chromedevtools.github.io/devtools-protocol).
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// connection is a pipe to Chromium and one back. A message ends with a zero byte.
type connection struct {
	mu       sync.Mutex // of everything below
	to       io.Writer
	last     int
	messages chan message
	ended    error // is set before messages is closed
}

func newConnection(to io.Writer, from io.Reader) *connection {
	c := &connection{to: to, messages: make(chan message)}
	go c.read(bufio.NewReader(from))
	return c
}

// read reads until the pipe is closed.
func (c *connection) read(from *bufio.Reader) {
	defer close(c.messages)
	for {
		text, err := from.ReadBytes(0)
		if err != nil {
			c.ended = fmt.Errorf("chromium has ended: %w", err)
			return
		}
		var m message
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m); err != nil {
			c.ended = fmt.Errorf("read a message of chromium: %w", err)
			return
		}
		c.messages <- m
	}
}

// call sends a command and returns its answer, and the events that came before it.
func (c *connection) call(ctx context.Context, session, method string,
	with params) (answer json.RawMessage, events []message, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	m := message{ID: c.last, SessionID: session, Method: method}
	if with != nil {
		if m.Params, err = json.Marshal(with); err != nil {
			return nil, nil, err
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, nil, err
	}
	if _, err := c.to.Write(append(text, 0)); err != nil {
		return nil, nil, fmt.Errorf("write to chromium: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil, events, ctx.Err()
		case got, ok := <-c.messages:
			switch {
			case !ok:
				return nil, events, c.ended
			case got.ID == 0:
				events = append(events, got)
			case got.ID == m.ID && got.Error != nil:
				return nil, events, fmt.Errorf("%s", got.Error.Message)
			case got.ID == m.ID:
				return got.Result, events, nil
			}
		}
	}
}
