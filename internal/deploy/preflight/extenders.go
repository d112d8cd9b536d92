package preflight

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// CalledExtender is an extender that exists already. Cert and Key are its client certificate, if
// the extender names files in the scheduler's pod.
type CalledExtender struct {
	profiles.Extender
	Cert, Key []byte
}

const (
	// askedNodes is the number of nodes in a request.
	askedNodes = 2
	// askTime bounds a request, mostAnswer an answer.
	askTime    = 5 * time.Second
	mostAnswer = 16 << 20
)

// ExtenderChecks returns a check for each extender that filters or scores: it sends one request
// with node names and one with nodes, for a pod that does not exist, and compares the answers. A
// handler that reads only one of the two finds no node in the other.
func ExtenderChecks(cfg *rest.Config, scheduler string, extenders []CalledExtender) ([]Check, error) {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	var checks []Check
	for _, e := range extenders {
		if e.FilterVerb == "" && e.PrioritizeVerb == "" {
			continue
		}
		ask := &extenderQuestion{CalledExtender: e, kube: kube, scheduler: scheduler}
		checks = append(checks, Check{
			Name: "extender-answers", Description: "extender " + e.URLPrefix + " answers for nodes", Warning: true, Run: ask.run,
		})
	}
	return checks, nil
}

// extenderQuestion asks one extender.
type extenderQuestion struct {
	CalledExtender
	kube      kubernetes.Interface
	scheduler string
}

func (q *extenderQuestion) run(ctx context.Context) (string, error) {
	list, err := q.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: askedNodes})
	if err != nil {
		return "", unknownIfForbidden(kubeapi.Explain("list nodes", err))
	}
	if len(list.Items) == 0 {
		return "", fmt.Errorf("the cluster has no node: %w", ErrUnknown)
	}
	client, err := q.client()
	if err != nil {
		return "", err
	}
	names, err := q.ask(ctx, client, list.Items, true)
	if err != nil {
		return "", err
	}
	whole, err := q.ask(ctx, client, list.Items, false)
	if err != nil {
		return "", err
	}
	return q.compare(len(list.Items), names, whole)
}

// asked is a request's result: the nodes that fit or that have a score, or the reason why there is
// none.
type asked struct {
	nodes  int
	failed string
}

func (a asked) String() string { return cmp.Or(a.failed, plural.Count(a.nodes, "node")) }

// compare returns an error if the extender does not answer the requests that the scheduler will
// send, and a description of both answers otherwise.
func (q *extenderQuestion) compare(nodes int, names, whole asked) (string, error) {
	detail := fmt.Sprintf("asked for %s: answer to names: %s; answer to nodes: %s", plural.Count(nodes, "node"), names, whole)
	configured, other, set := whole, names, "true"
	if *q.WithDefaults().NodeCacheCapable {
		configured, other, set = names, whole, "false"
	}
	switch {
	case configured.failed == "" && (configured.nodes > 0 || other.nodes == 0):
		return detail, nil
	case other.failed == "" && other.nodes > 0:
		return "", problem.Errorf("set nodeCacheCapable: "+set, "it does not answer the requests of the configuration: %s", detail)
	case configured.failed == "":
		return detail, nil
	}
	return "", problem.Errorf("check the verb and the address, and the logs of the extender", "%s", detail)
}

// extenderArgs are the fields in ExtenderArgs from k8s.io/kube-scheduler/extender/v1.
type extenderArgs struct {
	Pod       *corev1.Pod
	Nodes     *corev1.NodeList
	NodeNames *[]string
}

// extenderResult are the fields in ExtenderFilterResult that have nodes.
type extenderResult struct {
	Nodes     *corev1.NodeList
	NodeNames *[]string
	Error     string
}

// ask sends one request, with names or with nodes. An error means that this machine got no answer.
func (q *extenderQuestion) ask(
	ctx context.Context, client *http.Client, nodes []corev1.Node, names bool,
) (asked, error) {
	args := extenderArgs{Pod: q.pod()}
	if names {
		args.NodeNames = &[]string{}
		for i := range nodes {
			*args.NodeNames = append(*args.NodeNames, nodes[i].Name)
		}
	} else {
		args.Nodes = &corev1.NodeList{Items: nodes}
	}
	body, err := json.Marshal(args)
	if err != nil {
		return asked{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	url := strings.TrimRight(q.URLPrefix, "/") + "/" + cmp.Or(q.FilterVerb, q.PrioritizeVerb)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return asked{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return asked{}, fmt.Errorf("%w from this machine: %w", ErrUnknown, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return asked{failed: "HTTP status " + response.Status}, nil
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err != nil {
		return asked{}, fmt.Errorf("%w from this machine: read the answer: %w", ErrUnknown, err)
	}
	return q.read(answer, names), nil
}

// read counts the nodes in an answer as a scheduler does (HTTPExtender.Filter and Prioritize in
// pkg/scheduler/extender.go).
func (q *extenderQuestion) read(answer []byte, names bool) asked {
	if q.FilterVerb == "" {
		var scores []json.RawMessage
		if err := json.Unmarshal(answer, &scores); err != nil {
			return asked{failed: "not a list of scores"}
		}
		return asked{nodes: len(scores)}
	}
	var result extenderResult
	switch err := json.Unmarshal(answer, &result); {
	case err != nil:
		return asked{failed: "not the result of a filter"}
	case result.Error != "":
		return asked{failed: fmt.Sprintf("error %q", result.Error)}
	case names && result.NodeNames != nil:
		return asked{nodes: len(*result.NodeNames)}
	case result.Nodes != nil:
		return asked{nodes: len(result.Nodes.Items)}
	}
	return asked{}
}

// pod returns a pod that requests what the extender manages.
func (q *extenderQuestion) pod() *corev1.Pod {
	requests := corev1.ResourceList{}
	for _, r := range q.ManagedResources {
		requests[corev1.ResourceName(r.Name)] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "pmk-sched-check", UID: "pmk-sched-check"},
		Spec: corev1.PodSpec{SchedulerName: q.scheduler, Containers: []corev1.Container{{
			Name: "check", Image: "check", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}}},
	}
}

// client returns a client with the scheduler's certificates. Files that are only in its pod cannot
// be read here.
func (q *extenderQuestion) client() (*http.Client, error) {
	t := cmp.Or(q.TLS, &profiles.ExtenderTLS{})
	// Without a certificate authority enableHTTPS accepts any certificate (makeTransport in
	// pkg/scheduler/extender.go).
	insecure := t.Insecure || q.EnableHTTPS && len(t.CAData) == 0 && t.CAFile == ""
	config := &tls.Config{InsecureSkipVerify: insecure, ServerName: t.ServerName} //nolint:gosec // as configured
	ca, err := t.CAData, error(nil)
	if len(ca) == 0 && t.CAFile != "" {
		ca, err = os.ReadFile(t.CAFile)
	}
	cert, key := q.Cert, q.Key
	if err == nil && len(cert) == 0 && t.CertFile != "" {
		if cert, err = os.ReadFile(t.CertFile); err == nil {
			key, err = os.ReadFile(t.KeyFile)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(ca)
	}
	if len(cert) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}, nil
}
