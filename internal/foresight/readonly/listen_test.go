package readonly

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The scheduler reaches the proxy with the kubeconfig, as client-go reads it.
func TestTheKubeconfigHasTheTokenOfTheProxy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	listener, err := Listen(file, "secret")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Header.Get("Authorization"))
		})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	defer server.Close()
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "Bearer secret" {
		t.Errorf("%v %q", err, text)
	}
}
