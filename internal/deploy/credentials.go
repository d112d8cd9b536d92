package deploy

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// CredentialsReport describes a deployed scheduler's credentials, without secrets.
type CredentialsReport struct {
	// Mode is one of the Credentials constants.
	Mode string `json:"mode"`
	// Server is the API server's URL. It is empty if the URL is in a file that was not read.
	Server string `json:"server,omitempty"`
	// Subject and Issuer are from the client certificate. For a ServiceAccount, Subject is its user
	// name.
	Subject string     `json:"subject,omitempty"`
	Issuer  string     `json:"issuer,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Source is the object or file with the certificate: "Secret/kube-system/s-credentials-1a2b", or a
	// file on each node.
	Source string `json:"source"`
	// File is the kubeconfig's path in the scheduler's pod.
	File string `json:"file"`
	// Renewal describes how the credentials are renewed.
	Renewal string `json:"renewal"`
	// Unknown is the reason why subject and expiry are unknown.
	Unknown string `json:"unknown,omitempty"`
}

// ReadNodeFile reads a kubeconfig on this node. The function is nil if this is not a control-plane
// node.
type ReadNodeFile func(path string) (*inspect.NodeCredentials, error)

// NodeFileReader returns a function that reads the scheduler's kubeconfig on this node, whose path
// a cluster's objects name: no other file is read for them. It returns nil if this is not a
// control-plane node.
func NodeFileReader(s *session.Session) (ReadNodeFile, error) {
	root, err := s.FindNodeRoot()
	if err != nil || root == "" {
		return nil, err
	}
	return func(path string) (*inspect.NodeCredentials, error) {
		if !inspect.IsSchedulerKubeconfig(path) {
			return nil, fmt.Errorf("%q is not the scheduler kubeconfig of a node: it is not read", path)
		}
		return inspect.LoadNodeCredentials(root, path)
	}, nil
}

// DescribeCredentials describes a scheduler's credentials by its objects in the cluster.
func DescribeCredentials(owned []*unstructured.Unstructured, namespace, name string,
	readFile ReadNodeFile) (*CredentialsReport, error) {
	at := slices.IndexFunc(owned, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && o.GetNamespace() == namespace &&
			o.GetLabels()[ownership.LabelName] != ownership.Extender
	})
	if at < 0 {
		return nil, problem.Invalidf("`pmk-sched status` lists those that are deployed",
			"scheduler %s is not deployed in namespace %s", name, namespace)
	}
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(owned[at].Object, &deployment); err != nil {
		return nil, fmt.Errorf("read Deployment/%s/%s: %w", namespace, name, err)
	}
	r := &CredentialsReport{File: manifest.KubeconfigPath(name)}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		var err error
		switch {
		case volume.Name == manifest.KubeconfigVolume && volume.HostPath != nil:
			err = r.hostPath(volume.HostPath.Path, readFile)
		case volume.Name == manifest.KubeconfigVolume && volume.ConfigMap != nil:
			err = r.configMap(owned, namespace, name, volume.ConfigMap.Name)
		case volume.Name == manifest.CredentialsVolume && volume.Secret != nil:
			err = r.secret(owned, namespace, volume.Secret.SecretName)
		}
		if err != nil {
			return nil, err
		}
	}
	if r.Mode == "" {
		return nil, fmt.Errorf("no kubeconfig is mounted in Deployment/%s/%s", namespace, name)
	}
	return r, nil
}

// hostPath describes the node's own file.
func (r *CredentialsReport) hostPath(path string, readFile ReadNodeFile) error {
	r.Mode, r.Source = CredentialsHostPath, path+" of each node"
	r.Renewal = "with the node's certificates; a scheduler reads a renewed file when its container restarts"
	if readFile == nil {
		r.Unknown = "the file is on the control-plane nodes, and this is none of them"
		return nil
	}
	found, err := readFile(path)
	if err != nil {
		r.Unknown = err.Error()
		return nil //nolint:nilerr // the file of another node may be readable: the report has the reason
	}
	r.Source, r.Server = path+" of this node; other nodes have their own", found.Server
	return r.certificate(found.Cert)
}

// configMap describes a kubeconfig in a ConfigMap: with the certificate, or with the path of the
// certificate or the token.
func (r *CredentialsReport) configMap(owned []*unstructured.Unstructured, namespace, name, configMap string) error {
	object := kubeapi.ObjectName("ConfigMap", namespace, configMap)
	var found corev1.ConfigMap
	if err := decode(owned, "ConfigMap", namespace, configMap, &found); err != nil {
		return err
	}
	for _, text := range found.Data {
		config, err := clientcmd.Load([]byte(text))
		if err != nil {
			// the decoder's error quotes the content, which may be the key
			return fmt.Errorf("read %s: not a kubeconfig", object)
		}
		for _, server := range config.Clusters {
			r.Server = server.Server
		}
		for _, user := range config.AuthInfos {
			switch {
			case user.TokenFile != "":
				r.Mode, r.Source = CredentialsServiceAccount, kubeapi.ObjectName("ServiceAccount", namespace, name)
				r.Subject, r.Renewal = "system:serviceaccount:"+namespace+":"+name, "the kubelet renews the token in "+
					user.TokenFile
			case len(user.ClientCertificateData) > 0:
				r.Mode, r.Source, r.Renewal = CredentialsNodeInline, object, renewedByDeploy
				if err := r.certificate(user.ClientCertificateData); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// renewedByDeploy describes how a copy of a node's certificate is renewed.
const renewedByDeploy = "`pmk-sched credentials refresh` or `pmk-sched deploy` on a control-plane node takes that " +
	"node's certificate"

// secret describes the certificate in a Secret.
func (r *CredentialsReport) secret(owned []*unstructured.Unstructured, namespace, name string) error {
	var found corev1.Secret
	if err := decode(owned, "Secret", namespace, name, &found); err != nil {
		return err
	}
	r.Mode, r.Source, r.Renewal = CredentialsNode, kubeapi.ObjectName("Secret", namespace, name), renewedByDeploy
	return r.certificate(found.Data[corev1.TLSCertKey])
}

// certificate describes the first certificate in PEM text.
func (r *CredentialsReport) certificate(text []byte) error {
	parsed, err := parseCertificate(text)
	if err != nil {
		return fmt.Errorf("read the certificate in %s: %w", r.Source, err)
	}
	r.Subject, r.Issuer, r.Expires = parsed.Subject.String(), parsed.Issuer.String(), &parsed.NotAfter
	return nil
}

// decode reads one of the objects.
func decode(objects []*unstructured.Unstructured, kind, namespace, name string, into any) error {
	object := kubeapi.ObjectName(kind, namespace, name)
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name
	})
	if at < 0 {
		return problem.Errorf("deploy the scheduler again", "%s, which the scheduler mounts, does not exist", object)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[at].Object, into); err != nil {
		return fmt.Errorf("read %s: %w", object, err)
	}
	return nil
}
