// float16 of the host, under CUDA's name.
#pragma once
using __half = _Float16;
