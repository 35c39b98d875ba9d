package commands

// containerTools are commands that run containers, clusters and other machines.
var containerTools = []*Command{
	{Names: "docker docker-compose podman podman-compose nerdctl buildah skopeo ctr crictl lima limactl colima finch apptainer singularity runc crun distrobox toolbox lxc lxc-attach lxd incus machinectl systemd-nspawn kaniko", Class: Network, Rest: Data, Facts: Runtime | Download, Why: "runs programs outside of this container, and fetches images", Example: "docker ps"},
	{Names: "kubectl oc helm k9s minikube kind k3s k3d kustomize argocd flux istioctl linkerd kubeadm stern skaffold tilt", Class: Network, Rest: Data, Facts: Upload | Download, Why: "speaks with a cluster, and runs programs in it", Example: "kubectl get pods"},
	{Names: "terraform terragrunt tofu pulumi packer vagrant ansible ansible-playbook ansible-console ansible-test ansible-pull ansible-doc salt salt-call chef-client puppet facter knife cdk sam serverless sls cdist", Class: Network, Rest: Data, Facts: Runtime | Download, Why: "runs plug-ins and changes other machines", Example: "terraform plan"},
	{Names: "qemu-system-x86_64 qemu-img virsh virt-install VBoxManage multipass firecracker kvm", Class: Network, Rest: Data, Facts: Runtime, Why: "runs other machines", Example: "virsh list"},
	{Names: "claude codex gemini aider cursor-agent goose opencode llm ollama", Class: Network, Rest: Data, Facts: Runtime | Upload, Why: "an agent that runs programs and sends what it reads", Example: "llm hello"},
}
