package files

import "weir/internal/taint"

// Uses tells how full the maps of secret files are.
func (f *Files) Uses() ([]taint.Use, error) {
	return taint.Uses(f.objects.SecretNodes, f.objects.SecretNames, f.objects.SecretOpens)
}
