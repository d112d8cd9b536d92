package extender

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// hostile returns bodies of about n bytes that take much more memory when they are decoded.
func hostile(n int) map[string]string {
	fill := func(begin, part, last, end string) string {
		return begin + strings.Repeat(part, (n-len(begin)-len(end))/len(part)-1) + last + end
	}
	fields := strings.Builder{}
	for i := 0; fields.Len() < n-100; i++ {
		fields.WriteString(`"` + strconv.FormatInt(int64(i), 36) + `":"1",`)
	}
	return map[string]string{
		"one-letter names":       fill(`{"Pod":{},"NodeNames":["`, `a","`, `a`, `"]}`),
		"names that are escaped": fill(`{"Pod":{},"NodeNames":["`, `\n","`, `a`, `"]}`),
		"nulls as containers":    fill(`{"NodeNames":["a"],"Pod":{"spec":{"containers":[`, `null,`, `null`, `]}}}`),
		"empty containers":       fill(`{"Pod":{"spec":{"containers":[`, `{},`, `{}`, `]}},"NodeNames":["a"]}`),
		"lists of empty lists": fill(`{"Pod":{"spec":{"containers":[`, `{"env":[null,null,null,null,null]},`, `{}`,
			`]}},"NodeNames":["a"]}`),
		"requests of a container": `{"NodeNames":["a"],"Pod":{"spec":{"containers":[{"resources":{"requests":{` +
			strings.TrimSuffix(fields.String(), ",") + `}}}]}}}`,
		"numbers as nodes":         fill(`{"Pod":{},"Nodes":{"items":[`, `1,`, `1`, `]}}`),
		"lists in lists":           `{"Pod":` + strings.Repeat("[", n),
		"a long string":            fill(`{"NodeNames":["a"],"Pod":{"metadata":{"name":"`, `a`, `a`, `"}}}`),
		"empty objects as victims": fill(`{"Pod":{},"NodeNameToVictims":{"a":{"Pods":[`, `{},`, `{}`, `]}}}`),
	}
}

// A body makes the extender allocate no more than its share of memory allows, for any content.
// Garbage counts too here, so that the test does not depend on when it is collected.
func TestHostileBodiesTakeNoMoreMemoryThanTheyAreCharged(t *testing.T) {
	l, m := limits{nodes: 3, namesOnly: true}, newMemory(0)
	charged := func(t *testing.T, text []byte, bound size) uint64 {
		cost, err := m.cost(text, bound)
		if err != nil {
			t.Fatal(err)
		}
		return uint64(cost)
	}
	for _, size := range []int{10 << 10, 1 << 20, int(l.body())} {
		for name, body := range hostile(size) {
			t.Run(fmt.Sprintf("%s, %d KiB", name, size>>10), func(t *testing.T) {
				if len(body) > size+10 {
					t.Fatalf("the body has %d bytes", len(body))
				}
				text := []byte(body)
				most := charged(t, text, l.pod())
				got := allocated(most, func() {
					// Errors are as good as answers.
					_, _ = decodeNodeArguments(text, l)
				})
				if got > most {
					t.Errorf("filter: %d KiB were allocated for a body of %d KiB, and %d KiB charged", got>>10, len(text)>>10,
						most>>10)
				}
				most = charged(t, text, l.victims())
				got = allocated(most, func() { _, _ = decodePreemptArguments(text, l) })
				if got > most {
					t.Errorf("preempt: %d KiB were allocated for a body of %d KiB, and %d KiB charged", got>>10, len(text)>>10,
						most>>10)
				}
			})
		}
	}
}

// allocated returns the bytes that do allocates. If they are more than most, it is called twice
// more, and the least counts, since goroutines that other tests have left allocate meanwhile.
func allocated(most uint64, do func()) uint64 {
	least := uint64(math.MaxUint64)
	for call := 0; call < 3 && least > most; call++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

func TestLimitsFollowTheSizeOfTheCluster(t *testing.T) {
	names := func(n int) string {
		return `{"Pod":{},"NodeNames":["` + strings.Repeat(`a","`, n-1) + `a"]}`
	}
	server, _ := serveWith(t, filledCache(t, threeNodes...), Options{NamesOnly: true}, labelled())
	for name, c := range map[string]struct {
		body   string
		status int
		answer string
	}{
		"as many nodes as there may be": {names(1003), http.StatusOK, "unknown"},
		"more nodes": {names(1004), http.StatusRequestEntityTooLarge,
			"NodeNames has more than 1003 entries"},
		"8 MiB": {names(2 << 20), http.StatusRequestEntityTooLarge, "the body has more than"},
		"whole nodes": {`{"Pod":{},"Nodes":{"items":[{"metadata":{"name":"a"}}]}}`, http.StatusBadRequest,
			"nodeCacheCapable: true"},
		"many containers": {`{"NodeNames":["a"],"Pod":{"spec":{"containers":[` + strings.Repeat("{},",
			listEntries) + `{}]}}}`, http.StatusRequestEntityTooLarge, "Pod has more than 8192 list entries"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := post(t, server, VerbFilter, c.body)
			if status != c.status || c.status != http.StatusOK && !strings.Contains(string(answer), c.answer) {
				t.Errorf("%d %.200s", status, answer)
			}
		})
	}
	many := make([]interface{}, 2000)
	for i := range many {
		many[i] = newNode(fmt.Sprintf("n%d", i), nil)
	}
	larger, _ := serveWith(t, filledCache(t, many...), Options{NamesOnly: true}, labelled())
	if status, answer := post(t, larger, VerbFilter, names(3500)); status != http.StatusOK {
		t.Errorf("%d %.200s", status, answer)
	}
	if status, answer := post(t, larger, VerbFilter, names(3501)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %.200s", status, answer)
	}
}

// slow is a policy that begins and waits.
func slow(begun chan<- struct{}, end <-chan struct{}) scheduler.Plugin {
	return preFilterPolicy{"Slow",
		func(ctx context.Context, _ scheduler.State, _ *corev1.Pod) (*scheduler.PreFilterResult, *scheduler.Status) {
			begun <- struct{}{}
			select {
			case <-end:
			case <-ctx.Done():
			}
			return nil, nil
		}}
}

func TestRequestsBeyondTheMemoryAreAnsweredWith503(t *testing.T) {
	begun, end := make(chan struct{}, 3), make(chan struct{})
	server, _ := serveWith(t, nil, Options{MaxMemory: 8 * leastMemory}, slow(begun, end))
	const body = `{"Pod":{},"NodeNames":["a"]}`
	statuses := make(chan int, 2)
	for range 2 {
		go func() { statuses <- statusOf(server, body) }()
		receive(t, "the policy is asked", begun)
	}
	status, answer := post(t, server, VerbFilter, body)
	if status != http.StatusServiceUnavailable || !strings.Contains(string(answer), "wait for memory") {
		t.Errorf("a third request: %d %s", status, answer)
	}
	close(end)
	for range 2 {
		if status := receive(t, "a request is answered", statuses); status != http.StatusOK {
			t.Errorf("a request that had its memory: %d", status)
		}
	}
	if status, answer := post(t, server, VerbFilter, body); status != http.StatusOK {
		t.Errorf("afterwards: %d %s", status, answer)
	}
}

// statusOf posts a filter request and returns the status, 0 for an error.
func statusOf(server *httptest.Server, body string) int {
	response, err := server.Client().Post(server.URL+"/"+VerbFilter, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return 0
	}
	// Only the status matters.
	_ = response.Body.Close()
	return response.StatusCode
}
