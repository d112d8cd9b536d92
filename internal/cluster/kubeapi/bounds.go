package kubeapi

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Bounds on the data that one API server can make a command read and wait for. Lists are read in
// pages with at most 500 objects, which take a few megabytes.
const (
	// maxAnswer bounds an answer's body, in bytes.
	maxAnswer = 64 << 20
	// maxItems bounds the items in a JSON list: a pod without content is two bytes there, and 1,192 in
	// memory. Lists that are not read in pages have few objects.
	maxItems = 50_000
	// maxValues bounds the objects and arrays in a JSON answer: a container without content takes 408
	// bytes. A page of 500 pods with their managed fields has 150,000.
	maxValues = 1 << 19
	// maxListTime bounds the time to read one list's pages. An API server forgets a list's state
	// within 10 minutes (kube-apiserver, --etcd-compaction-interval).
	maxListTime = 15 * time.Minute
	// maxPages bounds the pages in one list: a million objects.
	maxPages = 2000
	// maxRetryAfter bounds how long a client waits when the API server asks it to, in seconds.
	maxRetryAfter = 5
)

// BoundError is returned when an API server exceeds a bound of what pmk-sched reads.
type BoundError struct{ What string }

// Error returns what the API server did.
func (e *BoundError) Error() string { return "the API server " + e.What }

// Hint returns an instruction for the user.
func (e *BoundError) Hint() string {
	return "check that this is the address of an API server (--kubeconfig/--context), without a proxy that changes its answers"
}

// bounded is a transport that bounds an API server's answers. A list that never ends, or an answer
// that does not, would take the command's memory or time.
type bounded struct {
	next http.RoundTripper
	// streams: answers may have any size.
	streams bool

	mu    sync.Mutex
	lists map[string]list
}

// list is a list whose pages are read.
type list struct {
	began time.Time
	pages int
}

func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return &bounded{next: next, lists: map[string]list{}}
}

// Streaming returns a copy of the configuration from [Connect] without a bound on answers: for a
// proxy, which keeps none, and for servers in the cluster, which rely on its API server and list
// all of its pods.
func Streaming(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return &bounded{next: next, streams: true, lists: map[string]list{}}
	}
	return cfg
}

// RoundTrip sends a request, and returns an answer that is bounded.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := b.countPage(r); err != nil {
		return nil, err
	}
	answer, err := b.next.RoundTrip(b.asText(r))
	if err != nil {
		return nil, err
	}
	if to, err := answer.Location(); err == nil && answer.StatusCode/100 == 3 && to.Host != r.URL.Host {
		_ = answer.Body.Close() // the answer is not read
		return nil, &BoundError{What: "redirects to another host, " + to.Host}
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > maxRetryAfter {
		answer.Header.Set("Retry-After", strconv.Itoa(maxRetryAfter))
	}
	if answer.StatusCode == http.StatusSwitchingProtocols || b.streams || isStream(r.URL) {
		return answer, nil
	}
	if format := answer.Header.Get("Content-Type"); isBinary(format) {
		_ = answer.Body.Close() // the answer is not read
		return nil, &BoundError{What: "answers in the format " + format + ", which was not asked for"}
	}
	answer.Body = &boundedBody{ReadCloser: answer.Body}
	return answer, nil
}

// asText returns a request that accepts no binary format: controller-runtime's clients and the
// metadata client prefer protobuf.
func (b *bounded) asText(r *http.Request) *http.Request {
	accepted := r.Header.Get("Accept")
	if b.streams || !isBinary(accepted) {
		return r
	}
	text := slices.DeleteFunc(strings.Split(accepted, ","), isBinary)
	r = r.Clone(r.Context())
	r.Header.Set("Accept", cmp.Or(strings.Join(text, ","), runtime.ContentTypeJSON))
	return r
}

// isBinary reports whether client-go decodes an answer in that format, whose objects are not
// counted. An object without content takes two bytes in protobuf, and 1,192 in memory.
func isBinary(format string) bool {
	return strings.Contains(format, "protobuf") || strings.Contains(format, "cbor")
}

// isStream reports whether the answer is read as it comes, and may be endless: a watch or a log.
func isStream(address *url.URL) bool {
	query := address.Query()
	return query.Has("watch") || query.Has("follow") || strings.HasSuffix(address.Path, "/log")
}

// countPage returns an error if a request is for another page of a list that has had too many.
func (b *bounded) countPage(r *http.Request) error {
	query := r.URL.Query()
	if r.Method != http.MethodGet || !query.Has("limit") {
		return nil
	}
	more := query.Has("continue")
	query.Del("continue")
	key := r.URL.Path + "?" + query.Encode()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lists[key]
	if !more || l.pages == 0 {
		l = list{began: time.Now()}
		// A controller's client reads lists for months.
		maps.DeleteFunc(b.lists, func(_ string, old list) bool { return time.Since(old.began) > 2*maxListTime })
	}
	l.pages++
	b.lists[key] = l
	if l.pages > maxPages || time.Since(l.began) > maxListTime {
		return &BoundError{What: fmt.Sprintf("returns a list without end: %s, page %d", r.URL.Path, l.pages)}
	}
	return nil
}

// boundedBody is an answer's body. Reading fails when it exceeds a bound.
type boundedBody struct {
	io.ReadCloser
	bytes int

	// quoted and escaped are the state within a string.
	quoted, escaped      bool
	depth, items, values int
}

// Read reads part of the body.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += n
	b.count(p[:n])
	switch {
	case b.bytes > maxAnswer:
		return 0, &BoundError{What: fmt.Sprintf("sends an answer of more than %d MiB", maxAnswer>>20)}
	case b.items > maxItems:
		return 0, &BoundError{What: fmt.Sprintf("sends a list of more than %d items", maxItems)}
	case b.values > maxValues:
		return 0, &BoundError{What: fmt.Sprintf("sends an answer with more than %d values", maxValues)}
	}
	return n, err
}

// count counts JSON objects and arrays. Those at the third level are a list's items.
func (b *boundedBody) count(text []byte) {
	for _, c := range text {
		switch {
		case b.escaped:
			b.escaped = false
		case b.quoted:
			b.escaped, b.quoted = c == '\\', c != '"'
		case c == '"':
			b.quoted = true
		case c == '{', c == '[':
			b.values++
			if b.depth++; b.depth == 3 {
				b.items++
			}
		case c == '}', c == ']':
			b.depth--
		}
	}
}
