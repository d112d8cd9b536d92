package extender

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits of a request for a pod, which the API server stores in at most 1.5 MiB (etcd's limit of a
// request), and for each node.
const (
	podBytes  = 3 << 20 // a pod whose quotes are escaped again
	nameBytes = 300     // names of nodes have at most 253 bytes
	nodeBytes = 25 << 10
	// unseenNodes is the number of nodes that the scheduler may know before the cache does, in
	// addition to a quarter of the cached nodes.
	unseenNodes = 1000
	// assumedNodes is the number of nodes without a cluster.
	assumedNodes = 5000
	// listEntries and fields of a pod; the largest pods have hundreds.
	listEntries = 8 << 10
	fields      = 64 << 10
	// victimsPerNode are pods that one node may lose to preemption.
	victimsPerNode = 110
)

// limits bound one request: the memory that a sender can make the extender allocate follows from
// the size of the cluster.
type limits struct {
	nodes     int
	namesOnly bool
}

func (e *Extender) limits() limits {
	l := limits{nodes: assumedNodes, namesOnly: e.namesOnly}
	if e.cache != nil {
		l.nodes = e.cache.size()
	}
	return l
}

// names is the number of nodes in a request.
func (l limits) names() int { return l.nodes + l.nodes/4 + unseenNodes }

// body is the size of a request in bytes.
func (l limits) body() int64 {
	if l.namesOnly {
		return podBytes + int64(l.names())*nameBytes
	}
	return podBytes + int64(l.names())*nodeBytes
}

// pod bounds a pod, victims the pods that several nodes may lose.
func (l limits) pod() size { return size{entries: listEntries, fields: fields} }

func (l limits) victims() size {
	pods := l.nodes * victimsPerNode
	return size{entries: listEntries + 50*pods, fields: fields + 500*pods}
}

// limited decodes a value unless it is larger than limit. JSON of a few bytes, such as null in a
// list of containers, can take hundreds of times its size when it is decoded.
type limited[T any] struct {
	what  string
	limit size
	value T
	given bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *limited[T]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		l.given = false
		return nil
	}
	if l.limit != (size{}) && !measure(data).within(l.limit) {
		return &sizeError{fmt.Sprintf("%s has more than %s", l.what, l.limit)}
	}
	l.given = true
	return json.Unmarshal(data, &l.value)
}

// size counts the parts of a JSON document, or bounds them. A bound of 0 means any number.
type size struct {
	top     int // elements or fields of the document itself
	entries int // elements of lists
	fields  int // fields of objects
}

func (s size) within(limit size) bool {
	return (limit.top == 0 || s.top <= limit.top) && (limit.entries == 0 || s.entries <= limit.entries) &&
		(limit.fields == 0 || s.fields <= limit.fields)
}

// String describes a bound.
func (s size) String() string {
	if s.top > 0 {
		return fmt.Sprintf("%d entries", s.top)
	}
	return fmt.Sprintf("%d list entries or %d fields", s.entries, s.fields)
}

type sizeError struct{ message string }

// Error returns the message.
func (e *sizeError) Error() string { return e.message }

// measure counts in one pass, without decoding. Of a document that is not valid it counts
// something.
func measure(data []byte) size {
	var s size
	var isList []bool
	count := func() {
		switch len(isList) {
		case 0:
			return
		case 1:
			s.top++
		}
		if isList[len(isList)-1] {
			s.entries++
		} else {
			s.fields++
		}
	}
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			isList = append(isList, data[i] == '[')
			if next := i + 1; next < len(data) && data[next] != ']' && data[next] != '}' {
				count()
			}
		case ',':
			count()
		case ']', '}':
			if len(isList) > 0 {
				isList = isList[:len(isList)-1]
			}
		}
	}
	return s
}

// Memory of requests.
const (
	// memoryOtherwise is the memory for requests if the program has no memory limit.
	memoryOtherwise = 1 << 30
	// leastMemory is the memory that every request takes, so that their number is bounded too.
	leastMemory = 64 << 10
	// entryMemory and fieldMemory are the memory of one entry of a list, such as a container, and
	// of one field.
	entryMemory, fieldMemory = 2 << 10, 256
	// memoryWait is how long a request waits for memory.
	memoryWait = time.Second
)

// memory bounds the memory of the requests that run at the same time.
type memory struct {
	total int64
	left  *semaphore.Weighted
}

// newMemory returns a memory of total bytes. If total is 0, it is half of the limit of the program
// (GOMEMLIMIT).
func newMemory(total int64) *memory {
	if total == 0 {
		total = memoryOtherwise
		if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
			total = limit / 2
		}
	}
	return &memory{total: total, left: semaphore.NewWeighted(total)}
}

// take takes the memory for a body of the given size until release is called. It waits a moment,
// and returns an error if there is none by then. A body for which the memory would never suffice is
// served alone.
func (m *memory) take(ctx context.Context, body int64) (release func(), err error) {
	need := min(cost(body), m.total)
	wait, cancel := context.WithTimeout(ctx, memoryWait)
	defer cancel()
	if err := m.left.Acquire(wait, need); err != nil {
		return nil, fmt.Errorf("wait for memory for a body of %d bytes: other requests took it for %s", body, memoryWait)
	}
	return func() { m.left.Release(need) }, nil
}

// cost is an upper bound of the memory for a body, of which the smallest entry has 3 bytes ("{},")
// and the smallest field 8.
func cost(body int64) int64 {
	return max(leastMemory, 8*body+min(body/3, listEntries)*entryMemory+min(body/8, fields)*fieldMemory)
}
