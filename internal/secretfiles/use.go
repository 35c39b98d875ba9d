package secretfiles

import "weir/internal/bpfobj"

// Uses tells how full the maps of secret files are.
func (f *Files) Uses() ([]bpfobj.Use, error) {
	return bpfobj.Uses(f.objects.SecretNodes, f.objects.SecretNames, f.objects.SecretOpens)
}
