package extender

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"
)

// Memory of requests.
const (
	// memoryOtherwise is the memory for requests if the program has no memory limit.
	memoryOtherwise = 1 << 30
	// leastMemory is the memory that every request takes, so that their number is bounded too.
	leastMemory = 64 << 10
	// entryMemory, fieldMemory and nameMemory are the memory for a list entry, such as a container,
	// for a field, and for a node's name with its part of the answer.
	entryMemory, fieldMemory, nameMemory = 3 << 10, 256, 256
	// memoryWait is the maximum time that a request waits for memory. After each memoryWaitPart, large
	// bodies that are late end.
	memoryWait, memoryWaitPart = time.Second, 100 * time.Millisecond
	// lateBody is the maximum delay of a large body while another request needs memory.
	lateBody = 100 * time.Millisecond
	// mostSmall is the maximum size of a small body.
	mostSmall = 1 << 20
)

// memory bounds the memory of the requests that run at the same time. Half is for small bodies
// while they arrive: their number is bounded. A quarter is for the first part of each request that
// has arrived, so that large requests leave memory to small ones. The rest is for large requests.
type memory struct {
	total     int64
	smallBody int64 // the size of a body for which no memory is charged before it has arrived
	part      int64 // the maximum that one request takes from first
	restTotal int64

	first, rest *semaphore.Weighted
	large       *crowd // bodies that take memory while they arrive; the age is how late they are
}

// newMemory returns a memory with total bytes. If total is 0, it is half the program's limit
// (GOMEMLIMIT).
func newMemory(total int64) *memory {
	if total == 0 {
		total = memoryOtherwise
		if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
			total = limit / 2
		}
	}
	return &memory{
		total: total, smallBody: min(total/2/maxWaiting, mostSmall), part: max(total/32, leastMemory), restTotal: total / 4,
		first: semaphore.NewWeighted(max(total/4, leastMemory)), rest: semaphore.NewWeighted(total / 4),
		large: newCrowd(maxWaiting, maxWaitingPerAddress),
	}
}

var errNoMemory = errors.New("wait for memory: other requests took it for " + memoryWait.String())

// charge is one request's memory.
type charge struct {
	*memory
	first, rest int64
}

// grow takes memory until the request has the given number of bytes, or all that there is: the
// largest request is served alone. It waits a moment, and returns errNoMemory if there is none by
// then.
func (c *charge) grow(ctx context.Context, bytes int64) error {
	// In this order, no request has a part of first while it waits for rest.
	if rest := min(bytes-c.part, c.restTotal); rest > c.rest {
		if err := c.take(ctx, c.memory.rest, rest-c.rest); err != nil {
			return err
		}
		c.rest = rest
	}
	if first := min(bytes, c.part); first > c.first {
		if err := c.take(ctx, c.memory.first, first-c.first); err != nil {
			return err
		}
		c.first = first
	}
	return nil
}

func (c *charge) take(ctx context.Context, from *semaphore.Weighted, n int64) error {
	if from.TryAcquire(n) {
		return nil
	}
	for waited := time.Duration(0); waited < memoryWait && ctx.Err() == nil; waited += memoryWaitPart {
		c.large.endOlder(lateBody)
		part, cancel := context.WithTimeout(ctx, memoryWaitPart)
		err := from.Acquire(part, n)
		cancel()
		if err == nil {
			return nil
		}
	}
	return errNoMemory
}

// shrink gives back all but bytes.
func (c *charge) shrink(bytes int64) {
	if rest := max(bytes-c.part, 0); rest < c.rest {
		c.memory.rest.Release(c.rest - rest)
		c.rest = rest
	}
	if bytes < c.first {
		c.memory.first.Release(c.first - bytes)
		c.first = bytes
	}
}

// cost is an upper bound of the memory for a body that has arrived and for its answer. bound is the
// limit of its parts that are decoded. It returns a sizeError if the decoded parts need more memory
// than there is.
func (m *memory) cost(body []byte, bound size) (int64, error) {
	rest, names := body, 0
	if before, list, found := splitAtNames(body); found {
		if count, plain := countNames(list); plain {
			rest, names = before, count
		}
	}
	s := measure(rest)
	decoded := int64(min(s.entries, bound.entries))*entryMemory + int64(min(s.fields, bound.fields))*fieldMemory
	if decoded > m.total {
		return 0, &sizeError{fmt.Sprintf("a body with %s needs up to %d bytes of memory, the extender has %d", s, decoded,
			m.total)}
	}
	return max(leastMemory, 8*int64(len(body))+decoded+int64(names)*nameMemory), nil
}
