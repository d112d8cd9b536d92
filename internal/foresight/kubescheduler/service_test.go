package kubescheduler

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func serve(t *testing.T, answer func(ctx context.Context, number int, args *arguments) any) *service {
	t.Helper()
	s, err := startService("filter", answer)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheServiceAnswersCallsOfTheVerbOnly(t *testing.T) {
	s := serve(t, func(_ context.Context, number int, args *arguments) any {
		return map[string]any{"number": number, "nodes": args.NodeNames}
	})
	if want := "http://" + s.Host() + "/"; !strings.HasPrefix(s.Address(), want) || len(s.Address()) < len(want)+26 ||
		s.URL(7) != s.Address()+"/7" {
		t.Errorf("the addresses are %s and %s of %s", s.Address(), s.URL(7), s.Host())
	}
	for _, tc := range []struct {
		method, url, body string
		status            int
		want              string // the answer, or the beginning of the error
	}{
		{http.MethodPost, s.URL(7) + "/filter", `{"NodeNames":["a","b"],"Pod":{}}`, 200, `{"nodes":["a","b"],"number":7}`},
		{http.MethodPost, s.URL(0) + "/filter", `{}`, 200, `{"nodes":null,"number":0}`},
		{http.MethodPost, s.URL(7) + "/filter", `{`, 400, "unexpected EOF"},
		{http.MethodPost, s.Address() + "/x/filter", `{}`, 400, `strconv.Atoi: parsing "x": invalid syntax`},
		{http.MethodPost, s.URL(7) + "/bind", `{}`, 404, "404"},
		{http.MethodGet, s.URL(7) + "/filter", ``, 405, "Method Not Allowed"},
		{http.MethodPost, "http://" + s.Host() + "/7/filter", `{}`, 404, "404"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		isJSON := response.Header.Get("Content-Type") == "application/json"
		if err != nil || response.StatusCode != tc.status || !strings.HasPrefix(string(text), tc.want) ||
			isJSON != (tc.status == 200) {
			t.Errorf("%s %s %s: %d %s, %v", tc.method, tc.url, tc.body, response.StatusCode, text, err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A call that takes longer than the context of Close is ended.
func TestCloseEndsCalls(t *testing.T) {
	entered := make(chan struct{})
	s := serve(t, func(ctx context.Context, _ int, _ *arguments) any {
		close(entered)
		<-ctx.Done()
		return nil
	})
	called := make(chan error)
	go func() {
		response, err := http.Post(s.URL(1)+"/filter", "", strings.NewReader("{}")) //nolint:noctx // Close ends it
		if err == nil {
			response.Body.Close()
			err = fmt.Errorf("got %s", response.Status)
		}
		called <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("got %v", err)
	}
	if err := <-called; strings.HasPrefix(err.Error(), "got ") {
		t.Error(err)
	}
}
