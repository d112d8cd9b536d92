//go:build linux

package calls

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// Ways in which a server can fail, and pmk-extender cannot.
const (
	passes int32 = iota
	hangs
	answers500
	answersGarbage
	answersHalf
	namesNobody
)

// faulty is a proxy for an extender that fails as mode specifies.
type faulty struct {
	*httptest.Server
	mode atomic.Int32
	pass http.Handler
}

func startFaulty(t *testing.T, extender string) *faulty {
	t.Helper()
	target, err := url.Parse(extender)
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{pass: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// ServeHTTP implements http.Handler.
func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch f.mode.Load() {
	case hangs:
		_, _ = io.Copy(io.Discard, r.Body) // only then is it noticed that the client gives up
		<-r.Context().Done()
	case answers500:
		http.Error(w, "something went wrong", http.StatusInternalServerError)
	case answersGarbage:
		_, _ = io.WriteString(w, "<html>Welcome to nginx!</html>")
	case answersHalf:
		whole := httptest.NewRecorder()
		f.pass.ServeHTTP(whole, r)
		w.Header().Set("Content-Length", strconv.Itoa(whole.Body.Len()))
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case namesNobody:
		answer := `{"NodeNames": ["nobody"]}`
		if strings.HasSuffix(r.URL.Path, "/prioritize") {
			answer = `[{"Host": "nobody", "Score": 10}]`
		}
		_, _ = io.WriteString(w, answer)
	default:
		f.pass.ServeHTTP(w, r)
	}
}
