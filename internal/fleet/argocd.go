package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// Argo CD's cluster Secrets (argo-cd, docs/operator-manual/declarative-setup.md, Clusters).
const (
	argoNamespace = "argocd"
	argoSecrets   = "argocd.argoproj.io/secret-type=cluster"
	// argoInCluster is the server of the cluster in which Argo CD runs: its Secret has no credentials.
	argoInCluster = "https://kubernetes.default.svc"
)

// argoConfig is the key config in a cluster Secret (argo-cd,
// pkg/apis/application/v1alpha1/types.go, ClusterConfig).
type argoConfig struct {
	Username    string `json:"username"`
	Password    string `json:"password"`
	BearerToken string `json:"bearerToken"`
	TLS         struct {
		Insecure   bool   `json:"insecure"`
		ServerName string `json:"serverName"`
		CertData   []byte `json:"certData"`
		KeyData    []byte `json:"keyData"`
		CAData     []byte `json:"caData"`
	} `json:"tlsClientConfig"`
	AWS      json.RawMessage `json:"awsAuthConfig"`
	Exec     *argoExec       `json:"execProviderConfig"`
	ProxyURL string          `json:"proxyUrl"`
}

type argoExec struct {
	Command     string            `json:"command"`
	Args        []string          `json:"args"`
	Env         map[string]string `json:"env"`
	APIVersion  string            `json:"apiVersion"`
	InstallHint string            `json:"installHint"`
}

// argoCD returns the clusters that an Argo CD manages.
func (o Source) argoCD(ctx context.Context, base kubeapi.ConnectOptions) ([]Cluster, error) {
	cfg, err := kubeapi.Connect(base)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	secrets := kube.CoreV1().Secrets(cmp.Or(o.Namespace, argoNamespace))
	var list []Cluster
	options := metav1.ListOptions{LabelSelector: argoSecrets, Limit: pageSize}
	for page, err := range kubeapi.Pages(ctx, secrets.List, options) {
		if err != nil {
			return nil, kubeapi.Explain("list cluster Secrets of Argo CD", err)
		}
		for i := range page.Items {
			list = append(list, o.argoCluster(base, &page.Items[i]))
		}
	}
	return list, nil
}

func (o Source) argoCluster(base kubeapi.ConnectOptions, secret *corev1.Secret) Cluster {
	server := strings.TrimRight(string(secret.Data["server"]), "/")
	c := Cluster{Name: cmp.Or(string(secret.Data["name"]), server, secret.Name), Labels: secret.Labels}
	kubeconfig, err := argoKubeconfig(server, secret.Data["config"], o.AllowExec)
	switch {
	case err != nil:
		c.err = fmt.Errorf("read Secret/%s/%s: %w", secret.Namespace, secret.Name, err)
	case kubeconfig == nil:
		c.connection = base
	default:
		c.connection = loaded(base, kubeconfig)
	}
	return c
}

// argoKubeconfig returns the kubeconfig in a cluster Secret, or nil for the cluster in which the
// Secret is. Its errors quote nothing from the content.
func argoKubeconfig(server string, text []byte, allowExec bool) (*clientcmdapi.Config, error) {
	var config argoConfig
	if len(text) > 0 {
		if err := json.Unmarshal(text, &config); err != nil {
			return nil, errors.New("its key config is not the JSON of a cluster of Argo CD")
		}
	}
	tls := config.TLS
	switch {
	case server == "":
		return nil, errors.New("it has no key server")
	case len(config.AWS) > 0 && string(config.AWS) != "null":
		return nil, problem.Errorf("use the cluster's kubeconfig with --from contexts",
			"awsAuthConfig is not supported: only Argo CD's own image has the program for it")
	case server == argoInCluster && config.Username == "" && config.BearerToken == "" && len(tls.CertData) == 0 &&
		config.Exec == nil:
		return nil, nil
	}
	cluster := &clientcmdapi.Cluster{
		Server: server, TLSServerName: tls.ServerName, InsecureSkipTLSVerify: tls.Insecure,
		CertificateAuthorityData: tls.CAData, ProxyURL: config.ProxyURL,
	}
	user := &clientcmdapi.AuthInfo{
		Username: config.Username, Password: config.Password, Token: config.BearerToken,
		ClientCertificateData: tls.CertData, ClientKeyData: tls.KeyData,
	}
	if x := config.Exec; x != nil {
		user.Exec = &clientcmdapi.ExecConfig{Command: x.Command, Args: x.Args, APIVersion: x.APIVersion,
			InstallHint: x.InstallHint}
		for name, value := range x.Env {
			user.Exec.Env = append(user.Exec.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
		}
		slices.SortFunc(user.Exec.Env, func(a, b clientcmdapi.ExecEnvVar) int { return strings.Compare(a.Name, b.Name) })
	}
	return single(server, cluster, user), checkUntrusted(cluster, user, allowExec)
}
