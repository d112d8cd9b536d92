//go:build linux

// Package routes registers routes with API servers of tests: by a policy, or by the webhook, which
// it serves on loopback.
package routes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/admission/router"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy/route"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
)

// Flags returns the flags of an API server of a release: it serves policies if the release has
// them, and pods need no ServiceAccounts.
func Flags(release string) []string {
	flags := []string{"--disable-admission-plugins=ServiceAccount"}
	if strings.HasPrefix(release, "v1.34.") || strings.HasPrefix(release, "v1.35.") {
		flags = append(flags, "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
			"--feature-gates=MutatingAdmissionPolicy=true")
	}
	return flags
}

// Register registers a route until the test ends. Without a PolicyAPI it serves the webhook.
func Register(t testing.TB, cfg *rest.Config, r route.Registration) {
	t.Helper()
	r.Labels, r.WebhookNamespace = ownership.Labels(r.Rule.Scheduler), "default"
	objects, err := route.Objects(r)
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if hooks, ok := o.(*registrationv1.MutatingWebhookConfiguration); ok {
			hooks.Webhooks[0].ClientConfig = serve(t, cfg, "/"+r.Rule.Scheduler)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		made := &unstructured.Unstructured{Object: fields}
		if err := api.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(api.Delete(context.WithoutCancel(t.Context()), made)); err != nil {
				t.Error(err)
			}
		})
	}
}

// serve serves the webhook and returns how an API server calls it at a path.
func serve(t testing.TB, cfg *rest.Config, path string) registrationv1.WebhookClientConfig {
	t.Helper()
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(t.Context(), t.Context(), kube)
	if err != nil {
		t.Fatal(err)
	}
	authority := apiserver.NewAuthority(t)
	pair, err := authority.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "webhook"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1",
			Kind: "AdmissionReview"}, Response: r.Admit(request.Context(), request.URL.Path, review.Request)}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Log(err)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	url := server.URL + path
	return registrationv1.WebhookClientConfig{URL: &url, CABundle: authority.Cert}
}
