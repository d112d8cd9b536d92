package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health/observe"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// Sysdump writes the data for a bug report to a file, which is replaced when the archive is
// complete. Only its owner may read it. Without a name in the spec it contains all schedulers and
// extenders. version is pmk-sched's version, and status reads the status of all that pmk-sched
// manages.
func Sysdump(
	ctx context.Context, s *session.Session, sp *spec.Spec, file, version string, status func(context.Context) (any,
		error),
) (summary *sysdump.Summary, err error) {
	deps, err := deploy.Connect(s)
	if err != nil {
		return nil, err
	}
	r := redact.New()
	err = safeio.WriteFile(ctx, file, 0o600, func(f *os.File) error {
		a := sysdump.NewArchive(f, strings.TrimSuffix(filepath.Base(file), ".tar.gz"), r, time.Now())
		d := &dump{Session: s, sp: sp, cfg: deps.Config, deps: deps, archive: a, redact: r, version: version, status: status}
		if err := d.write(ctx); err != nil {
			return err
		}
		if err := a.Close(); err != nil {
			return err
		}
		summary = a.Summary(file)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return summary, nil
}

// dump is one archive.
type dump struct {
	*session.Session
	sp      *spec.Spec
	cfg     *rest.Config
	deps    deploy.Deps
	archive *sysdump.Archive
	redact  *redact.Redactor
	version string
	status  func(context.Context) (any, error)
	managed []*unstructured.Unstructured
	others  []sysdump.PodName
}

// write writes all parts. An API server that cannot be reached is an error; other failed reads are
// noted in the archive.
func (d *dump) write(ctx context.Context) error {
	d.learnClient()
	if err := d.Step("inspect the schedulers", func() error { return d.inspectCluster(ctx) }); err != nil {
		return err
	}
	return d.Step("read objects, logs and metrics", func() error {
		d.revisions(ctx)
		kube, err := kubernetes.NewForConfig(d.cfg)
		if err != nil {
			return fmt.Errorf("create client for %s: %w", d.cfg.Host, err)
		}
		c := &sysdump.Cluster{Name: d.sp.Name, Namespace: d.sp.Namespace, Managed: d.managed, Others: d.others,
			Metrics: observe.Metrics(d.cfg, kube)}
		return c.Write(ctx, d.cfg, d.archive, d.redact, d.Log)
	})
}

// learnClient makes the redactor learn the client's credentials.
func (d *dump) learnClient() {
	for _, secret := range []string{d.cfg.BearerToken, d.cfg.Password} {
		d.redact.Learn([]byte(secret))
	}
	d.redact.Learn(d.cfg.KeyData)
	for _, path := range []string{d.cfg.BearerTokenFile, d.cfg.KeyFile} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			d.archive.Failed("read the client's credentials", err)
			continue
		}
		d.redact.Learn(text)
	}
}

// inspectCluster reads the managed objects, and the results from `detect` and `status`.
func (d *dump) inspectCluster(ctx context.Context) error {
	release, err := inspect.ServerRelease(d.cfg)
	if err != nil {
		return err
	}
	client, err := apply.New(d.cfg, apply.Options{Log: d.Log})
	if err != nil {
		return err
	}
	d.managed, err = client.Managed(ctx, d.sp.Name, d.sp.Namespace)
	if err != nil {
		d.archive.Failed("list managed objects", err)
	}
	for _, o := range d.managed {
		d.learnObject(o)
	}
	d.archive.JSON("versions.json", map[string]string{
		"pmk-sched": d.version, "go": runtime.Version(), "platform": runtime.GOOS + "/" +
			runtime.GOARCH, "kubernetes": release.String(),
	})
	info, err := Inspect(ctx, d.Session, d.sp.Name, d.sp.Namespace)
	if err != nil {
		d.archive.Failed("detect", err)
	} else {
		d.archive.JSON("detect.json", info)
		for _, pod := range info.Scheduler.Pods {
			d.others = append(d.others, sysdump.PodName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	status, err := d.status(ctx)
	var finding interface{ CheckFailed() bool }
	if err != nil && !errors.As(err, &finding) {
		d.archive.Failed("status", err)
	} else {
		d.archive.JSON("status.json", status)
	}
	return ctx.Err()
}

// learnObject makes the redactor learn a Secret's values.
func (d *dump) learnObject(o *unstructured.Unstructured) {
	if o.GetKind() != "Secret" {
		return
	}
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	for key, value := range data {
		if text, ok := value.(string); ok && !strings.HasSuffix(key, ".crt") && key != "namespace" {
			d.redact.LearnEncoded(text)
		}
	}
	texts, _, _ := unstructured.NestedMap(o.Object, "stringData")
	for _, value := range texts {
		if text, ok := value.(string); ok {
			d.redact.Learn([]byte(text))
		}
	}
}

// revisions writes the revisions of all schedulers and extenders, with their objects, and the
// schedulers' credentials.
func (d *dump) revisions(ctx context.Context) {
	for _, o := range d.managed {
		name := o.GetLabels()[ownership.LabelInstance]
		if o.GetKind() != "Deployment" || name == "" {
			continue
		}
		where := o.GetNamespace() + "/" + name
		if err := d.history(ctx, o.GetNamespace(), name, where); err != nil {
			d.archive.Failed("read the revisions of "+where, err)
		}
		if o.GetLabels()[ownership.LabelName] == ownership.Extender {
			continue
		}
		report, err := Credentials(ctx, d.Session, name, o.GetNamespace())
		if err != nil {
			d.archive.Failed("describe the credentials of "+where, err)
			continue
		}
		d.archive.JSON("credentials/"+where+".json", report)
	}
}

// history writes the revisions of a scheduler or extender. It reads them one after the other,
// twice: the values in all Secrets are known before anything is written.
func (d *dump) history(ctx context.Context, namespace, name, where string) error {
	revisions, err := d.deps.Cluster.Revisions(ctx, namespace, name)
	if err != nil {
		return err
	}
	entries, err := deploy.History(ctx, revisions, func(ctx context.Context, info apply.RevisionInfo) (*apply.Revision,
		error) {
		r, err := d.deps.Cluster.ReadRevision(ctx, info)
		if err == nil {
			for _, object := range r.Objects {
				d.learnObject(object)
			}
		}
		return r, err
	})
	if err != nil {
		return err
	}
	d.archive.JSON("revisions/"+where+"/history.json", entries)
	for _, info := range revisions {
		r, err := d.deps.Cluster.ReadRevision(ctx, info)
		if err != nil {
			return err
		}
		for _, object := range r.Objects {
			d.archive.Object(fmt.Sprintf("revisions/%s/%d/%s", where, r.Number, objectFile(object)), object.Object)
		}
	}
	return nil
}

// objectFile is the name of an object's file.
func objectFile(o *unstructured.Unstructured) string {
	return strings.ReplaceAll(kubeapi.ObjectName(o.GetKind(), o.GetNamespace(), o.GetName()), "/", "_") + ".yaml"
}
