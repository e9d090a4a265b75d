"""Everything that needs a pretrained model, behind three small protocols: parser, word vectors, encoder."""

import os

# Some virtual machines report AMX but fault on its instructions, which kills the process. oneDNN reads this limit when
# it is first used; a user who knows their processor can set it higher.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
