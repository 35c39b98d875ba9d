package toolguard

// For tests outside the package.
var (
	TestGuard = testGuard
	Language  = language
)
