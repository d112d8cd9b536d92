package lifecycle

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/signing"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/internal/deploy/verify"
)

// Refresh is the result of RefreshCredentials.
type Refresh struct {
	// Mode of the credentials.
	Mode string `json:"mode"`
	// Refreshed is set if the scheduler got another certificate.
	Refreshed bool `json:"refreshed"`
	// Expires is the expiry of the certificate in use, or nil if it is unknown.
	Expires *time.Time `json:"expires,omitempty"`
	// Renewal describes how the credentials are renewed, and Seen the evidence for it, if nothing is
	// to be done.
	Renewal string   `json:"renewal,omitempty"`
	Seen    []string `json:"seen,omitempty"`
	// Revision and Changes of the deployment.
	Revision int             `json:"revision,omitempty"`
	Changes  apply.ChangeSet `json:"changes,omitempty"`
}

// RefreshOptions are options to refresh credentials.
type RefreshOptions struct {
	// Request requests a certificate from the cluster instead of taking this node's.
	Request bool
	deploy.RunOptions
}

// Credentials describes a scheduler's credentials.
func Credentials(ctx context.Context, s *session.Session, name, namespace string) (*deploy.CredentialsReport, error) {
	d, err := deploy.Connect(s)
	if err != nil {
		return nil, err
	}
	readFile, err := deploy.NodeFileReader(s)
	if err != nil {
		return nil, err
	}
	owned, err := d.Cluster.Owned(ctx, name, namespace)
	if err != nil {
		return nil, err
	}
	return deploy.DescribeCredentials(owned, namespace, name, readFile)
}

// RefreshCredentials gives a scheduler a newer certificate, deploys it as a new revision, and
// verifies that the scheduler schedules. The new certificate is checked with the API server first.
// Credentials that renew themselves are described.
func RefreshCredentials(
	ctx context.Context, s *session.Session, sp *spec.Spec, o RefreshOptions,
) (_ *Refresh, err error) {
	r := &refresher{s: s, o: o}
	if r.deps, err = deploy.Connect(s); err != nil {
		return nil, err
	}
	if r.root, err = s.FindNodeRoot(); err != nil {
		return nil, err
	}
	revisions, err := allRevisions(ctx, r.deps, sp)
	if err != nil {
		return nil, err
	}
	if last := apply.LastDeployed(revisions); last != nil {
		if r.current, err = r.deps.Cluster.ReadRevision(ctx, *last); err != nil {
			return nil, err
		}
	}
	if err := deploy.CheckCurrent(r.current, sp.Namespace, sp.Name); err != nil {
		return nil, err
	}
	readFile, err := r.fileReader()
	if err != nil {
		return nil, err
	}
	if r.report, err = deploy.DescribeCredentials(r.current.Objects, sp.Namespace, sp.Name, readFile); err != nil {
		return nil, err
	}
	switch r.report.Mode {
	case deploy.CredentialsServiceAccount, deploy.CredentialsHostPath:
		return r.describe(ctx)
	}
	return r.refresh(ctx, sp)
}

// refresher is one call to RefreshCredentials.
type refresher struct {
	s       *session.Session
	deps    deploy.Deps
	root    string
	current *apply.Revision
	report  *deploy.CredentialsReport
	file    *deploy.NodeFile // which the pods mount, if it is readable here
	o       RefreshOptions
}

// fileReader returns a function that reads a kubeconfig on this node and its modification time. It
// returns nil if this is not a control-plane node.
func (r *refresher) fileReader() (deploy.ReadNodeFile, error) {
	read, err := deploy.NodeFileReader(r.s)
	if read == nil {
		return nil, err
	}
	return func(path string) (*inspect.NodeCredentials, error) {
		found, err := read(path)
		if err != nil {
			return nil, err
		}
		written, err := inspect.NodeFileTime(r.root, path)
		if err != nil {
			return nil, err
		}
		r.file = &deploy.NodeFile{NodeCredentials: found, Written: written}
		return found, nil
	}, nil
}

// describe returns how credentials that renew themselves are renewed, and the evidence for it.
func (r *refresher) describe(ctx context.Context) (*Refresh, error) {
	kube, err := kubernetes.NewForConfig(r.deps.Config)
	if err != nil {
		return nil, err
	}
	selector := labels.SelectorFromSet(labels.Set{ownership.LabelName: ownership.Scheduler,
		ownership.LabelInstance: r.current.Name})
	pods, err := kube.CoreV1().Pods(r.current.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, kubeapi.Explain("list the pods of scheduler "+r.current.Name, err)
	}
	done := &Refresh{Mode: r.report.Mode, Expires: r.report.Expires, Renewal: r.report.Renewal}
	if r.report.Mode == deploy.CredentialsServiceAccount {
		done.Seen = deploy.DescribeTokens(pods.Items, time.Now())
		return done, nil
	}
	if r.report.Unknown != "" {
		r.s.Warn("subject and expiry are unknown: " + r.report.Unknown)
	}
	done.Seen = deploy.DescribeFile(pods.Items, r.file)
	return done, nil
}

// refresh deploys another certificate.
func (r *refresher) refresh(ctx context.Context, sp *spec.Spec) (*Refresh, error) {
	fresh, err := r.newCertificate(ctx)
	if err != nil {
		return nil, err
	}
	plan, err := deploy.PlanRefresh(r.current, fresh, time.Now())
	if errors.Is(err, deploy.ErrSameCertificate) {
		return &Refresh{Mode: r.report.Mode, Expires: r.report.Expires, Seen: []string{
			"the scheduler already uses " + fresh.String() + "; --csr requests a new one",
		}}, nil
	}
	if err != nil {
		return nil, err
	}
	r.deps.Report(plan)
	err = r.s.Step("check the new certificate", func() error {
		return signing.Check(ctx, r.deps.Config, certificates.Pair{Cert: fresh.Cert, Key: fresh.Key}, sp.Namespace, sp.Name)
	})
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", fresh, err)
	}
	outcome, err := deploy.Deploy(ctx, r.deps, plan, r.o.RunOptions)
	if err != nil {
		return nil, err
	}
	if _, err := Verify(ctx, r.s, verify.Options{Name: sp.Name, Namespace: sp.Namespace}); err != nil {
		return nil, problem.WithHint(fmt.Errorf("verify scheduler %s with the new certificate (revision %d): %w", sp.Name,
			outcome.Revision, err),
			"`"+plan.Command("rollback")+"` deploys the former certificate again")
	}
	report, err := deploy.DescribeCredentials(plan.Objects, sp.Namespace, sp.Name, nil)
	if err != nil {
		return nil, err
	}
	return &Refresh{Mode: report.Mode, Refreshed: true, Expires: report.Expires, Revision: outcome.Revision,
		Changes: outcome.Changes}, nil
}

// newCertificate returns this node's certificate, or one that the cluster signs.
func (r *refresher) newCertificate(ctx context.Context) (deploy.Successor, error) {
	if r.o.Request {
		return r.requestCertificate(ctx)
	}
	path, ok := inspect.SchedulerKubeconfig(r.root)
	if r.root == "" || !ok {
		return deploy.Successor{},
			problem.Invalidf(
				"run it on a control-plane node whose certificates were renewed, or request a certificate from the cluster with "+
					"--csr",
				"credentials %s are refreshed with the certificate of a control-plane node, and this machine is not one",
				r.report.Mode)
	}
	found, err := inspect.ReadNodeCredentials(r.root, path)
	if err != nil {
		return deploy.Successor{}, problem.WithHint(err, "--csr requests a certificate from the cluster")
	}
	cfg := rest.CopyConfig(r.deps.Config)
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return deploy.Successor{}, fmt.Errorf("read the certificate authority of %s: %w", cfg.Host, err)
	}
	if found.OfOtherCluster(cfg.CAData) {
		return deploy.Successor{},
			problem.Invalidf("use a kubeconfig of this node's cluster; `pmk-sched deploy --credentials "+r.report.Mode+
				"` stores the key in any cluster",
				"%s trusts another certificate authority than the current kubeconfig: this node may belong to another cluster "+
					"than %s, which must not get its key", path, cfg.Host)
	}
	return deploy.Successor{CA: found.CA, Cert: found.Cert, Key: found.Key, Origin: path}, nil
}

// requestCertificate requests a certificate from the cluster with the user and the groups from the
// certificate in use.
func (r *refresher) requestCertificate(ctx context.Context) (fresh deploy.Successor, err error) {
	used, leaf, err := deploy.ReadCertificate(r.current)
	if err != nil {
		return fresh, err
	}
	err = r.s.Step("request a certificate", func() error {
		pair, err := signing.Certificate(ctx, r.deps.Config, signing.Request{
			Name:    ownership.Manager + "-" + r.current.Name,
			Subject: pkix.Name{CommonName: leaf.Subject.CommonName, Organization: leaf.Subject.Organization},
			Timeout: r.o.Timeout, Note: r.s.Note,
		})
		fresh = deploy.Successor{CA: used.CA, Cert: pair.Cert, Key: pair.Key, Origin: "the cluster's signer", Requested: true}
		return err
	})
	return fresh, err
}
