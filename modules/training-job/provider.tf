# Where the job's provider works. ARNs are built from names, so a job whose provider works elsewhere than its platform
# would apply cleanly and be of no use: the state machine has a rule. It is not one of these, because what is asked of a
# platform that is made in the same apply would be read during the apply only.
data "aws_caller_identity" "this" {}

data "aws_default_tags" "this" {}

data "aws_region" "this" {}
